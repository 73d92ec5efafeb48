"""TA406: softmax or sigmoid output goes into `CrossEntropyLoss`, which applies softmax itself."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.edits import ProposedFix, unwrap

KEYWORDS = (("cross_entropy", "CrossEntropyLoss", "*criterion*", "*loss*"),)
AROUND = (("cross_entropy", "CrossEntropyLoss"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    losses = module.loss_inputs("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy")
    for call, output in losses:
        if output.is_probability:
            message = (
                f"cross entropy applies softmax again to the output of `{output.name}`: give it the logits"
            )
            applied = f"`{output.name}` is applied here"
            yield Suspicion(
                call, message, related=((output.node, applied),), fix=_without(output, call, module)
            )


def check_run(run: Run) -> Iterator[Said]:
    """What only running the program shows, such as an activation that an option selects."""
    for loss in run.scored:
        if loss.function == "cross_entropy" and loss.is_probability:
            message = f"cross entropy applies softmax again to the output of `{loss.activation}`: give it the logits"
            applied = f"`{loss.activation}` is applied here"
            yield said.Suspicion(loss.place, message, related=((loss.applied, applied),))


def _without(output: Output, call: cst.Call, module: FileFacts) -> ProposedFix | None:
    """Pass the scores instead, if nothing else uses the probabilities.

    Scores passed to a sigmoid may belong to labels that do not exclude each other, and need another loss.
    """
    inner = module.outputs.applied_to(output, call) if output.name == "softmax" else None
    return ProposedFix("hand over the scores", unwrap(output.node, inner)) if inner is not None else None
