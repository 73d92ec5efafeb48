"""The losses of torch: classes and functions, each the mean or the sum over a batch, as it is asked."""

from collections.abc import Callable

from ta_lint.dryrun.machine.batches import of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import method, new_class, stub
from ta_lint.dryrun.stubs.torch import dtypes, outputs
from ta_lint.dryrun.stubs.torch.activations import activation_of, scored
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.summing import difference, squared
from ta_lint.dryrun.stubs.torch.tensors import computed
from ta_lint.dryrun.values import NONE, Known, Value

LOSSES = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss", "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div", "CTCLoss": "ctc_loss", "HingeEmbeddingLoss": "hinge_embedding_loss", "MarginRankingLoss": "margin_ranking_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "TripletMarginLoss": "triplet_margin_loss", "PoissonNLLLoss": "poisson_nll_loss",
    "GaussianNLLLoss": "gaussian_nll_loss", "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "MultiMarginLoss": "multi_margin_loss",
    "SoftMarginLoss": "soft_margin_loss", "TripletMarginWithDistanceLoss": "triplet_margin_with_distance_loss",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
}  # fmt: skip
"""The classes of losses, and the function that each calls."""


_OF_CLASSES = frozenset({"cross_entropy", "nll_loss", "multi_margin_loss", "multilabel_margin_loss"})
"""The losses whose target is no floating number."""

_OF_DIFFERENCES = frozenset({"mse_loss", "smooth_l1_loss", "huber_loss"})


def _reduced(made: Call) -> object:
    """How a loss is reduced, as `reduction` or the older arguments say; `...` is not known."""
    if made.constant(99, "reduce", True) is False:
        return "none"
    summed = made.constant(99, "size_average", None) is False
    return "sum" if summed else made.constant(99, "reduction", "mean")


_GROWS: dict[object, bool] = {"sum": True, "mean": False, "batchmean": False}


def _loss(function: str) -> Callable[[Call], Value]:
    def compute(made: Call) -> Value:
        reduced = _reduced(made)
        result = computed(
            made.machine,
            made.values(),
            made.place,
            shape=() if reduced in ("mean", "sum", "batchmean") else None,
            dtype=dtypes.of_first(made) if function in _OF_CLASSES else dtypes.product(made),
            amount=of_batch(made.machine, grows=reduced == "sum")
            if reduced in ("mean", "sum", "batchmean")
            else None,
            grows=_GROWS.get(reduced),
        )
        outputs.used(made, outputs.COMPARED, made.values())
        given, target = made.given(0, "input"), made.given(1, "target")
        made.emit("loss", result, by=function, input=given, target=target, output=activation_of(given))
        if function == "cross_entropy":
            scored(made, given)
        if function in _OF_DIFFERENCES and given is not None and target is not None:
            squared(made, difference(given, target))
        return result

    return compute


LOSS = new_class("torch.nn.modules.loss._Loss", "torch.nn.modules.loss._WeightedLoss", bases=(MODULE,))


@method(LOSS, "__init__")
def _reduction(made: Call) -> Value:
    own = made.own()
    reduced = _reduced(made)
    given = made.argument(99, "reduction", "mean") if reduced is ... else Known(reduced)
    made.machine.state.write(own.fields, "reduction", given)
    return NONE


def _loss_class(name: str, function: str) -> None:
    cls = new_class(f"torch.nn.{name}", bases=(LOSS,))

    def forward(made: Call) -> Value:
        own = made.own()
        inner = Call(
            made.machine,
            made.node,
            made.args[1:],
            {**made.kwargs, "reduction": own.fields.get("reduction", NONE)},
            made.loose,
        )
        return _loss(function)(inner)

    method(cls, "forward")(forward)


for _name, _function in LOSSES.items():
    _loss_class(_name, _function)
    stub(f"torch.nn.functional.{_function}")(_loss(_function))
