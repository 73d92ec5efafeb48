"""Entropies of policies, with the sign that a value has them by."""

import re
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import bare, factors, summands
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame, Origin
from ta_lint.syntax.tree import Node, dotted

_DEPTH = 10
_LOG = regex(r"_?log_?")
_WEIGHT = regex(r"\w*(coef|weight|scale|beta|lambda|reg|alpha|c\d?$|eta$)\w*", re.IGNORECASE)

# What leaves the sign of a number what it is.
_KEEPS = frozenset("contiguous cpu cuda float mean reshape squeeze sum to unsqueeze view".split())
_JOINS = frozenset("cat concat hstack mean stack sum".split())


@dataclass(frozen=True, eq=False)
class Entropy:
    """An entropy, or where `sign` is -1 its negative; `made` is the expression that gives it that sign."""

    sign: int
    made: Node


class Entropies:
    """Queries about which values are entropies."""

    def __init__(self, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def of(self, node: Node, frame: Frame | None = None) -> Entropy | None:
        """The entropy that a value certainly is, in whatever scale and sum; None for any other."""
        return self._of(node, frame, _DEPTH)

    def weight(self, node: Node) -> int | None:
        """The sign of what an entropy is weighted by: of a number, or of a setting that is called a coefficient."""
        number = self._kinds.number(node)
        if number is not None:
            return (number > 0) - (number < 0)
        name = (dotted(bare(node)) or "").rpartition(".")[2]
        return 1 if _WEIGHT.fullmatch(name) else None

    def _of(self, node: Node | None, frame: Frame | None, depth: int) -> Entropy | None:
        if node is None:
            return None
        origins = self._flow.of(node, (), frame).tensors
        return self._agreed(origins, depth)

    def _agreed(self, origins: tuple[Origin, ...], depth: int) -> Entropy | None:
        if depth == 0:
            return None
        found = [self._made(origin, depth) for origin in origins]
        signs = {one.sign if one is not None else None for one in found}
        return found[0] if len(signs) == 1 else None

    def _made(self, origin: Origin, depth: int) -> Entropy | None:
        node, frame = origin.node, origin.frame
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            return _turned(self._of(node.expression, frame, depth - 1), node)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            return _at(self._of(node.left, frame, depth - 1), node)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            return self._product(node, frame, depth)
        if not isinstance(node, cst.Call):
            return None
        name = called_name(node)
        if name == "entropy" and not node.args and isinstance(node.func, cst.Attribute):
            return Entropy(1, node)
        operand = self._operand(node)
        if name == "neg":
            return _turned(self._of(operand, frame, depth - 1), node)
        if name in _KEEPS and (found := self._of(operand, frame, depth - 1)) is not None:
            return _at(found, node)
        if name in _JOINS and operand is not None:
            return _at(self._agreed(self._flow.of(operand, (None,), frame).tensors, depth - 1), node)
        return None

    def _product(self, node: cst.BinaryOperation, frame: Frame | None, depth: int) -> Entropy | None:
        parts = list(factors(node))
        if len(parts) == 2:
            for one, other in (parts, parts[::-1]):
                sign = _sign(one) * _sign(other)
                if self._is_log_of(_unsigned(one), _unsigned(other), frame):
                    return Entropy(-sign, node)
        weighted = [part for part in parts if self.weight(part) is None]
        if len(weighted) != 1:
            return None
        found = self._of(weighted[0], frame, depth - 1)
        for part in parts:
            if part is not weighted[0] and self.weight(part) == -1:
                found = _turned(found, node)
        return _at(found, node)

    def _is_log_of(self, log: Node, probability: Node, frame: Frame | None) -> bool:
        """Whether a value is the logarithm of another one, by what makes both, or by their names alone."""
        logs = self._flow.of(log, (), frame).origins
        made = self._flow.of(probability, (), frame).origins
        if len(logs) != 1 or len(made) != 1:
            return False
        whole, part = logs[0], made[0]
        if isinstance(whole.node, cst.Call):
            name, operand = called_name(whole.node), self._operand(whole.node)
            if name == "log" and operand is not None:
                inner = bare(_first(operand))
                return _same(self._flow.of(inner, (), whole.frame).origins, made) or (
                    dotted(inner) is not None and dotted(inner) == dotted(bare(probability))
                )
            if name == "log_softmax" and isinstance(part.node, cst.Call):
                scores = self._operand(part.node)
                if called_name(part.node) == "exp" and scores is not None:
                    return _same(self._flow.of(scores, (), part.frame).origins, logs)
                return (
                    called_name(part.node) == "softmax"
                    and operand is not None
                    and scores is not None
                    and _same(
                        self._flow.of(operand, (), whole.frame).origins,
                        self._flow.of(scores, (), part.frame).origins,
                    )
                )
            return False
        return _is_named_after(log, probability)

    def _operand(self, call: cst.Call) -> Node | None:
        """`x` of `x.sum()` and of `torch.sum(x)`."""
        if isinstance(call.func, cst.Attribute) and self._names.qualified(call.func) is None:
            return call.func.value
        return call.args[0].value if call.args else None


def _turned(found: Entropy | None, node: Node) -> Entropy | None:
    return Entropy(-found.sign, node) if found is not None else None


def _at(found: Entropy | None, node: Node) -> Entropy | None:
    return Entropy(found.sign, node) if found is not None else None


def _sign(node: Node) -> int:
    return -1 if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus) else 1


def _unsigned(node: Node) -> Node:
    return node.expression if isinstance(node, cst.UnaryOperation) else node


def _first(node: Node) -> Node:
    """`p` of `p + 1e-8` and of `p.clamp(min=1e-8)`."""
    node = next(iter(summands(node)))[1]
    clamped = isinstance(node, cst.Call) and called_name(node) in ("clamp", "clamp_min", "clip")
    if clamped and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.value if dotted(node.func.value) != "torch" else node.args[0].value
    return node


def _same(one: tuple[Origin, ...], other: tuple[Origin, ...]) -> bool:
    """Whether two values are made by the same expressions."""
    return {(origin.node, origin.path) for origin in one} == {(origin.node, origin.path) for origin in other}


def _is_named_after(log: Node, probability: Node) -> bool:
    """Whether a variable is called the logarithm of another one: `log_probs` of `probs`."""
    name, other = dotted(bare(log)), dotted(bare(probability))
    return (
        name is not None and other is not None and "log" in name and _LOG.sub("_", name).strip("_") == other
    )
