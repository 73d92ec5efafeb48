"""TA407: `NLLLoss` gets probabilities or raw scores instead of log-probabilities."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.edits import ProposedFix, replace

KEYWORDS = (("nll_loss", "NLLLoss", "*criterion*", "*loss*"),)
AROUND = (("nll_loss", "NLLLoss"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    losses = module.loss_inputs("torch.nn.NLLLoss", "torch.nn.functional.nll_loss")
    for call, output in losses:
        if not output.is_logarithm:
            message = f"`nll_loss` expects log-probabilities but gets the output of {output.is_of}: use `log_softmax`"
            made = ((output.node, "that output is made here"),)
            yield Suspicion(call, message, related=made, fix=_with_logarithms(output, call, module))


def check_run(run: Run) -> Iterator[Said]:
    """What only running the program shows, such as a loss that an option selects."""
    for loss in run.scored:
        if loss.function == "nll_loss" and not loss.is_logarithm:
            message = (
                f"`nll_loss` expects log-probabilities but gets the output of {loss.is_of}: use `log_softmax`"
            )
            made = ((loss.applied, "that output is made here"),)
            yield said.Suspicion(loss.place, message, related=made)


def _with_logarithms(output: Output, call: cst.Call, module: FileFacts) -> ProposedFix | None:
    """`log_softmax` in place of `softmax`, if nothing else uses the probabilities."""
    applied = module.outputs.applied_to(output, call) if output.name == "softmax" else None
    if applied is None or not isinstance(output.node, cst.Call):
        return None
    function = output.node.func
    if not isinstance(function, cst.Attribute):  # an imported name does not import `log_softmax`
        return None
    return ProposedFix("take the logarithm as well", (replace(function.attr, "log_softmax"),))
