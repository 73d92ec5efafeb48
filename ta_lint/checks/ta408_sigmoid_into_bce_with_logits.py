"""TA408: `BCEWithLogitsLoss` gets probabilities, or `BCELoss` gets something else."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.activations import Activation
from ta_lint.syntax.edits import ProposedFix, unwrap

KEYWORDS = (("binary_cross_entropy_with_logits", "BCEWithLogitsLoss", "binary_cross_entropy", "BCELoss"),)

_PROBABILITIES = frozenset({"softmax", "sigmoid"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    functional = "torch.nn.functional.binary_cross_entropy"
    for call, scores, activation in module.loss_inputs(
        "torch.nn.BCEWithLogitsLoss", f"{functional}_with_logits"
    ):
        if activation.name in _PROBABILITIES:
            what = "applies sigmoid to its input, which is already the output of"
            inner = (
                module.activations.applied_to(activation, scores) if activation.name == "sigmoid" else None
            )
            fix = (
                ProposedFix("hand over the scores", unwrap(activation.node, inner))
                if inner is not None
                else None
            )
            yield _suspicion(module, call, what, activation, fix)
    for call, _, activation in module.loss_inputs("torch.nn.BCELoss", functional):
        if activation.name not in _PROBABILITIES:
            yield _suspicion(module, call, "takes probabilities and is given the output of", activation)


def _suspicion(
    module: FileFacts, call: cst.Call, what: str, activation: Activation, fix: ProposedFix | None = None
) -> Suspicion:
    message = f"`{module.code(call.func)}` {what} {activation.is_of}"
    return Suspicion(call, message, related=((activation.node, "that output is made here"),), fix=fix)
