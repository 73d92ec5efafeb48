"""TA408: `BCEWithLogitsLoss` gets probabilities, or `BCELoss` gets something else."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.edits import ProposedFix, unwrap

KEYWORDS = (
    (
        "binary_cross_entropy_with_logits",
        "BCEWithLogitsLoss",
        "binary_cross_entropy",
        "BCELoss",
        "*criterion*",
        "*loss*",
    ),
)
AROUND = (("binary_cross_entropy_with_logits", "BCEWithLogitsLoss", "binary_cross_entropy", "BCELoss"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    functional = "torch.nn.functional.binary_cross_entropy"
    for call, output in module.loss_inputs("torch.nn.BCEWithLogitsLoss", f"{functional}_with_logits"):
        if output.is_probability:
            what = "applies sigmoid on top of"
            inner = module.outputs.applied_to(output, call) if output.name == "sigmoid" else None
            fix = (
                ProposedFix("hand over the scores", unwrap(output.node, inner)) if inner is not None else None
            )
            yield _suspicion(module, call, what, output, "the logits", fix)
    for call, output in module.loss_inputs("torch.nn.BCELoss", functional):
        if not output.is_probability:
            yield _suspicion(module, call, "expects probabilities but gets the output of", output, "them")


def _suspicion(
    module: FileFacts, call: cst.Call, what: str, output: Output, wanted: str, fix: ProposedFix | None = None
) -> Suspicion:
    message = f"`{module.code(call.func)}` {what} {output.is_of}: give it {wanted}"
    return Suspicion(call, message, related=((output.node, "that output is made here"),), fix=fix)
