"""Policies of reinforcement learning: the log-probabilities of the actions that they chose."""

import re

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame, Origin, Value
from ta_lint.syntax.tree import Node, Tree, dotted

_DEPTH = 12  # nested expressions
_NAMED = regex(
    r"(?!.*old)(\w+_)?log_?(p|ps|pi|pis|probs?|prob_?a|p_?as?)(_\w+)?|(?!.*old)ratios?", re.IGNORECASE
)
_DISTRIBUTED = frozenset({"log_softmax", "log"})
_PICKS = frozenset({"gather", "index_select", "take_along_dim"})

# What leaves a log-probability, or a ratio, one: its sign and its scale aside.
_KEEPS = frozenset(
    "clamp clip contiguous cpu cuda double flatten float mean neg reshape squeeze sum to unsqueeze view".split()
)
_JOINS = frozenset("cat concat concatenate hstack stack vstack".split())


class Policies:
    """Queries about what a policy gives out."""

    def __init__(self, tree: Tree, names: Names, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._flow = flow

    def is_log_probability(self, node: Node) -> bool:
        """Whether a value certainly is the log-probability of chosen actions, or the ratio of two, in whatever sign and shape.

        Nobody chose an action of `rsample`: the gradient goes through it.
        """
        return self._all(self._flow.of(node), _DEPTH)

    def _all(self, value: Value, depth: int) -> bool:
        made = value.tensors
        return depth > 0 and bool(made) and all(self._is_made(one, value.aliases, depth) for one in made)

    def _is_made(self, origin: Origin, aliases: tuple[Node, ...], depth: int) -> bool:
        node, frame = origin.node, origin.frame
        match node:
            case cst.Call() if called_name(node) == "log_prob" and node.args:
                return not self._is_reparameterised(node.args[0].value, frame)
            case cst.UnaryOperation():
                return self._of(node.expression, frame, depth)
            case cst.BinaryOperation() if isinstance(node.operator, cst.Subtract):
                return self._of(node.left, frame, depth)
            case cst.Call() if called_name(node) in _PICKS:
                return self._is_distribution(self._operand(node), frame)
            case cst.Call() if called_name(node) == "log":
                return self._picks(self._operand(node), frame)
            case cst.Call() if called_name(node) in _DISTRIBUTED and origin.path:
                return True  # `log_probs[range(n), actions]`
            case cst.Call() if called_name(node) == "exp":
                return any(
                    isinstance(made.node, cst.BinaryOperation) and self._is_made(made, (), depth - 1)
                    for made in self._values(self._operand(node), frame)
                )
            case cst.Call() if called_name(node) in _JOINS and node.args:
                return self._all(self._flow.of(node.args[0].value, (None,), frame), depth - 1)
            case cst.Call() if called_name(node) in _KEEPS:
                return self._of(self._operand(node), frame, depth)
            case cst.Param() | cst.For() | cst.Attribute() | cst.Name():
                return self._is_called_so(node, aliases)
        return False

    def _of(self, node: Node | None, frame: Frame | None, depth: int) -> bool:
        return node is not None and self._all(self._flow.of(node, (), frame), depth - 1)

    def _values(self, node: Node | None, frame: Frame | None) -> tuple[Origin, ...]:
        return self._flow.of(node, (), frame).origins if node is not None else ()

    def _is_distribution(self, node: Node | None, frame: Frame | None) -> bool:
        """Whether a value is the log-probabilities of all actions."""
        made = [origin.node for origin in self._values(node, frame)]
        return bool(made) and all(
            isinstance(one, cst.Call) and called_name(one) in _DISTRIBUTED for one in made
        )

    def _picks(self, node: Node | None, frame: Frame | None) -> bool:
        """Whether a value is that of one action of several."""
        made = [origin.node for origin in self._values(node, frame)]
        return bool(made) and all(isinstance(one, cst.Call) and called_name(one) in _PICKS for one in made)

    def _is_reparameterised(self, action: Node, frame: Frame | None) -> bool:
        return any(
            isinstance(call, cst.Call) and called_name(call) == "rsample"
            for origin in self._values(action, frame)
            for call in self._tree.within(origin.node, cst.Call)
        )

    def _is_called_so(self, node: Node, aliases: tuple[Node, ...]) -> bool:
        """Whether a value that nobody sees the making of is called a log-probability, where no action is reparameterised."""
        name = node.name if isinstance(node, cst.Param) else node
        named = any(
            _NAMED.fullmatch((dotted(one) or "").rpartition(".")[2]) is not None for one in (name, *aliases)
        )
        return named and not any(one.value == "rsample" for one in self._tree.all(cst.Name))

    def _operand(self, call: cst.Call) -> Node | None:
        """`x` of `x.sum()` and of `torch.sum(x)`."""
        if isinstance(call.func, cst.Attribute) and self._names.qualified(call.func) is None:
            return call.func.value
        return call.args[0].value if call.args else None
