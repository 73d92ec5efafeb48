"""TA407: `NLLLoss` gets probabilities or raw scores instead of log-probabilities."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.activations import NO_LOGARITHMS, Activation
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node

KEYWORDS = (("nll_loss", "NLLLoss"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    losses = module.loss_inputs("torch.nn.NLLLoss", "torch.nn.functional.nll_loss")
    for call, scores, activation in losses:
        if activation.name in NO_LOGARITHMS:
            message = f"the negative log likelihood takes log-probabilities and is given the output of {activation.is_of}"
            made = ((activation.node, "that output is made here"),)
            yield Suspicion(call, message, related=made, fix=_with_logarithms(activation, scores, module))


def _with_logarithms(activation: Activation, scores: Node, module: FileFacts) -> ProposedFix | None:
    """`log_softmax` in place of `softmax`, if nothing else uses the probabilities."""
    applied = module.activations.applied_to(activation, scores) if activation.name == "softmax" else None
    if applied is None or not isinstance(activation.node, cst.Call):
        return None
    function = activation.node.func
    if not isinstance(function, cst.Attribute):  # an imported name does not import `log_softmax`
        return None
    return ProposedFix("take the logarithm as well", (replace(function.attr, "log_softmax"),))
