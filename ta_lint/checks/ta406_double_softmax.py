"""TA406: softmax or sigmoid output goes into `CrossEntropyLoss`, which applies softmax itself."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.activations import Activation
from ta_lint.syntax.edits import ProposedFix, unwrap
from ta_lint.syntax.tree import Node

KEYWORDS = (("cross_entropy", "CrossEntropyLoss"),)
AROUND = (("softmax", "sigmoid", "expit", "Softmax", "Softmax2d", "Sigmoid"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    losses = module.loss_inputs("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy")
    for call, scores, activation in losses:
        if activation.name in ("softmax", "sigmoid"):
            message = f"cross entropy applies softmax to its input, which is already the output of `{activation.name}`"
            applied = f"`{activation.name}` is applied here"
            fix = _without(activation, scores, module)
            yield Suspicion(call, message, related=((activation.node, applied),), fix=fix)


def _without(activation: Activation, scores: Node, module: FileFacts) -> ProposedFix | None:
    """Pass the scores instead, if nothing else uses the probabilities.

    Scores passed to a sigmoid may belong to labels that do not exclude each other, and need another loss.
    """
    inner = module.activations.applied_to(activation, scores) if activation.name == "softmax" else None
    return ProposedFix("hand over the scores", unwrap(activation.node, inner)) if inner is not None else None
