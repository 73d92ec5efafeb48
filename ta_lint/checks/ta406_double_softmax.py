"""TA406: softmax or sigmoid output goes into `CrossEntropyLoss`, which applies softmax itself."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.activations import Activation
from ta_lint.facts.edits import Fix, unwrap
from ta_lint.facts.tree import Node, argument

NEEDS = (
    r"\b(?:cross_entropy|CrossEntropyLoss)\b",
    r"\b(?:softmax|sigmoid|expit|Softmax|Softmax2d|Sigmoid)\b",
)


def check(module: Module) -> Iterator[Suspicion]:
    for call in module.loss_calls("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy"):
        scores = argument(call, "input", 0)
        activation = module.activations.of(scores) if scores is not None else None
        if scores is not None and activation is not None and activation.name in ("softmax", "sigmoid"):
            message = f"cross entropy applies softmax to its input, which is already the output of `{activation.name}`"
            applied = f"`{activation.name}` is applied here"
            fix = _without(activation, scores, module)
            yield Suspicion(call, message, related=((activation.node, applied),), fix=fix)


def _without(activation: Activation, scores: cst.BaseExpression, module: Module) -> Fix | None:
    """Hand over the scores, where nobody else gets the probabilities.

    Scores that went through a sigmoid may belong to labels that do not exclude each other, and another loss.
    """
    inner = _input(activation.node, module)
    if activation.name != "softmax" or inner is None:
        return None
    alone = module.tree.contains(scores, activation.node)
    if isinstance(scores, cst.Name) and (bound := module.names.definition(scores)) is not None:
        alone = bound.value is activation.node and len(module.names.mentions(scores)) == 2
    return Fix("hand over the scores", unwrap(activation.node, inner)) if alone else None


def _input(node: Node, module: Module) -> cst.BaseExpression | None:
    """What a function or a tensor's method is applied to; None for a layer, whose input is elsewhere."""
    if not isinstance(node, cst.Call):
        return None
    qualified = module.qualified(node.func)
    if qualified is not None:
        return argument(node, "input", 0) if qualified.rpartition(".")[2] == "softmax" else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "softmax":
        return node.func.value
    return None
