"""TA408: `BCEWithLogitsLoss` is given probabilities, or `BCELoss` is given none."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.edits import Fix, unwrap
from ta_lint.facts.tree import argument

NEEDS = (
    r"binary_cross_entropy|BCE",
    r"\b(?:binary_cross_entropy(?:_with_logits)?|BCE(?:WithLogits)?Loss)\b",
    (
        r"\b(?:softmax|log_softmax|sigmoid|logsigmoid|expit|relu|tanh|linear|Softmax|LogSoftmax|Softmax2d|Sigmoid|LogSigmoid|"
        r"ReLU|Tanh|Linear|Conv[123]d)\b"
    ),
)

_PROBABILITIES = frozenset({"softmax", "sigmoid"})


def check(module: Module) -> Iterator[Suspicion]:
    functional = "torch.nn.functional.binary_cross_entropy"
    for call in module.loss_calls("torch.nn.BCEWithLogitsLoss", f"{functional}_with_logits"):
        yield from _judge(module, call, True, "applies sigmoid to its input, which is already the output of")
    for call in module.loss_calls("torch.nn.BCELoss", functional):
        yield from _judge(module, call, False, "takes probabilities and is given the output of")


def _judge(module: Module, call: cst.Call, probabilities: bool, what: str) -> Iterator[Suspicion]:
    """The suspicion that the input of a loss is, or is not, a probability."""
    scores = argument(call, "input", 0)
    activation = module.activations.of(scores) if scores is not None else None
    if scores is None or activation is None or (activation.name in _PROBABILITIES) is not probabilities:
        return
    message = f"`{module.code(call.func)}` {what} {activation.is_of}"
    made = ((activation.node, "that output is made here"),)
    inner = module.activations.applied_to(activation, scores) if activation.name == "sigmoid" else None
    fix = Fix("hand over the scores", unwrap(activation.node, inner)) if inner is not None else None
    yield Suspicion(call, message, related=made, fix=fix)
