"""Calls of functions that drop values, and whether they do so in every mode."""

import libcst as cst

from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.modes import Modes
from ta_lint.syntax.tree import Node, Tree, dotted

_CALLERS_DEEP = 3


class Dropping:
    """Whether code runs in training and in evaluation alike, and what a probability is there."""

    def __init__(self, tree: Tree, kinds: Kinds, modes: Modes) -> None:
        self._tree = tree
        self._kinds = kinds
        self._modes = modes

    def is_always_on(self, call: cst.Call, depth: int = _CALLERS_DEEP) -> bool:
        """Whether a call runs in every mode: in a method of a module, or in a function that only such methods call."""
        if self._modes.always_on(call):
            return True
        function = self._tree.home(call)
        if depth == 0 or not isinstance(function, cst.FunctionDef) or self._modes.asks(function):
            return False
        sites = self._kinds.calls.sites(function) if self._tree.is_at_top(function) else []
        return bool(sites) and all(self.is_always_on(site, depth - 1) for site in sites)

    def drops(self, probability: Node, depth: int = _CALLERS_DEEP) -> bool:
        """Whether this is a nonzero number, what a constructor was given, the `p` of a dropout layer, or always one of these."""
        origin = self._kinds.origin(probability)
        if (number := self._kinds.number(origin)) is not None:
            return number > 0
        if self._modes.asks(origin):
            return False
        if isinstance(origin, cst.IfExp):
            return self.drops(origin.body, depth) and self.drops(origin.orelse, depth)
        if isinstance(origin, cst.Param) and not self._kinds.is_setting(origin):
            return depth > 0 and self._is_given(origin, depth - 1)
        name = dotted(origin) or ""
        if name.startswith("self.") and name.endswith(".p") and isinstance(origin, cst.Attribute):
            return self._kinds.kind(origin.value) is Kind.MODULE
        return self._kinds.is_setting(origin)

    def is_off(self, probability: Node) -> bool:
        """Whether it is zero: as it is written, or as each known call of a constructor gives it, perhaps by leaving out what is zero by default."""
        origin = self._kinds.origin(probability)
        given = self._kinds.calls.given(origin) if isinstance(origin, cst.Param) else [origin]
        return bool(given) and all(self._kinds.number(value) == 0 for value in given or ())

    def _is_given(self, parameter: cst.Param, depth: int) -> bool:
        """Whether each known call gives a parameter such a probability, in every mode."""
        function = self._tree.parent[self._tree.parent[parameter]]
        given = self._kinds.calls.given(parameter)
        if given is None or not isinstance(function, cst.FunctionDef):
            return False
        sites = self._kinds.calls.sites(function)
        return all(map(self.is_always_on, sites)) and all(self.drops(value, depth) for value in given)
