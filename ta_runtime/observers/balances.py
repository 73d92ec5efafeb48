"""Sees losses that add a mean and a sum, on thorough steps (`facts.Step.thorough`) alone: by the top of their graphs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ta_runtime.facts import Balance
from ta_runtime.measure.kinds import local
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import Place

if TYPE_CHECKING:
    from ta_runtime.facts import Loss, Run
    from ta_runtime.observers.context import Context

_RULE = "TA525"
LIMIT = 50.0
"""How many times the mean the rest of a loss may be."""
_TERMS = 16  # of one loss
_FAR = 400  # nodes between a sum and the layer that computed it
_FEW = 16  # elements whose sum is about what their mean is

_MEANS = frozenset(
    f"{name}Backward0"
    for name in (
        "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits", "HuberLoss", "Mean", "MseLoss", "NllLoss", "NllLoss2D", "SmoothL1Loss",
    )
)  # fmt: skip
_LAYERS = ("Addmm", "Bmm", "Mm", "Linear", "Convolution", "NativeLayerNorm", "NativeBatchNorm")


class Balances(Observer):
    """Watches the losses that backward passes begin from."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = _RULE in session.settings.rules
        self._balances: dict[Place, Balance] = {}

    def before_backward(self, loss: Tensor) -> None:
        window = self.session.window
        step = window.step
        if not self._wanted or step is None or not step.thorough or type(loss) is not Tensor or loss.dim():
            return
        criteria = [one for one in step.losses if one.training and one.batch == window.backwards - 1]
        if len(criteria) != 1 or criteria[0].options.get("reduction") != "mean":
            return
        if loss.grad_fn is not None and _mixes(loss.grad_fn):
            self._measure(criteria[0], loss)

    def _measure(self, criterion: "Loss", loss: Tensor) -> None:
        balance = self._balances.setdefault(criterion.place, Balance(criterion.place))

        def deliver(values: list[float]) -> None:
            mean = criterion.value
            if mean:
                balance.look(abs(values[0] - mean) / abs(mean), LIMIT)

        self.session.window.readings.scalars([local(loss.detach())], deliver)

    def report(self, run: "Run") -> None:
        run.balances = list(self._balances.values())


def _mixes(root: Any) -> bool:
    """Whether a loss adds the mean of a criterion and a sum over what layers computed."""
    terms = list(_terms(root))
    return (
        len(terms) > 1
        and any(term.name() in _MEANS for term in terms)
        and any(term.name() == "SumBackward0" and _is_of_layers(term) for term in terms)
    )


def _terms(root: Any) -> Iterator[Any]:
    """The terms of a loss: what is added up, with or without a number in front. What something divides is left out."""
    pending, found = [root], 0
    while pending and found < _TERMS:
        node = pending.pop()
        above = [one for one, _ in node.next_functions if one is not None]
        is_scaled = node.name() == "MulBackward0" and len(above) == 1 and node is not root
        if is_scaled or node.name() in ("AddBackward0", "SubBackward0", "NegBackward0"):
            pending += above
        else:
            found += 1
            yield node


def _is_of_layers(total: Any) -> bool:
    """Whether a sum is over more than a few elements that layers computed: penalties on weights are not."""
    size = 1
    for length in total._saved_self_sym_sizes:
        size *= int(length)
    stack, seen = [total], {total}
    while stack and size > _FEW and len(seen) < _FAR:
        node = stack.pop()
        if node.name().startswith(_LAYERS):
            return True
        for above, _ in node.next_functions:
            if above is not None and above not in seen:
                seen.add(above)
                stack.append(above)
    return False
