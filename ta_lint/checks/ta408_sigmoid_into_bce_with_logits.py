"""TA408: `BCEWithLogitsLoss` gets probabilities, or `BCELoss` gets something else."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
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


def check_run(run: Run) -> Iterator[Said]:
    """What only running the program shows, such as a loss inside a criterion of the project."""
    wrong = {
        ("binary_cross_entropy_with_logits", True): ("applies sigmoid on top of", "the logits"),
        ("binary_cross_entropy", False): ("expects probabilities but gets the output of", "them"),
    }
    for loss in run.scored:
        if (found := wrong.get((loss.function, loss.is_probability))) is not None:
            what, wanted = found
            made = ((loss.applied, "that output is made here"),)
            message = f"`{loss.function}` {what} {loss.is_of}: give it {wanted}"
            yield said.Suspicion(loss.place, message, related=made)


def _suspicion(
    module: FileFacts, call: cst.Call, what: str, output: Output, wanted: str, fix: ProposedFix | None = None
) -> Suspicion:
    message = f"`{module.code(call.func)}` {what} {output.is_of}: give it {wanted}"
    return Suspicion(call, message, related=((output.node, "that output is made here"),), fix=fix)
