"""Whether autograd records a computation: `no_grad` and the like, as contexts, as decorators, and in callers."""

import re
from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import Calls, called_name
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.tree import Node, Tree, argument, dotted

_CALLERS_DEEP = 3

_OFF = regex(r"torch\.(autograd\.(grad_mode\.)?)?(no_grad|inference_mode)")
_ON = regex(r"torch\.(autograd\.(grad_mode\.)?)?enable_grad")
_SET = regex(r"torch\.(autograd\.(grad_mode\.)?)?set_grad_enabled")

# Only torch has these names, whichever module they are imported through.
_OFF_NAME = regex(r"(\w+_)?(no_grad|inference_mode)(_\w+)?")

# Contexts that do not affect recording.
_NEUTRAL_CONTEXT = regex(
    r"accumulate|amp_autocast|autocast|catch_warnings|device|join|logging_redirect_tqdm|no_sync|nullcontext|open|"
    r"precision_scope|Pool|profile|progress|Progress|record_function|redirect_stdout|schedule|set_detect_anomaly|"
    r"sdpa_kernel|stream|suppress|SummaryWriter|tqdm|trange|Timer|timer|ThreadPoolExecutor"
)

_NEUTRAL_DECORATOR = regex(
    r"abstractmethod|cache|classmethod|command|cached_property|lru_cache|main|override|overload|property|record|"
    r"staticmethod|torch\.jit\.\w+|torch\.compile|wraps"
)


class Effect(StrEnum):
    """The effect of a context or decorator on recording; one without effect has none."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Decision:
    """The `with` statement or function that decides whether its code is recorded; `records` None is unknown."""

    node: cst.With | cst.FunctionDef
    records: bool | None


_MAY_SWITCH = frozenset({cst.With, cst.Lambda, cst.ClassDef, cst.FunctionDef})
_RECORDS = {Effect.ON: True, Effect.OFF: False, Effect.UNKNOWN: None}


class Recording:
    """Queries about where autograd records."""

    def __init__(self, tree: Tree, names: Names, calls: Calls) -> None:
        self._tree = tree
        self._names = names
        self._calls = calls
        self._called: dict[tuple[Node, int, tuple[cst.Call, ...]], bool | None] = {}
        self._switching: dict[cst.Module, bool] = {}

    def records(self, node: Node, depth: int = _CALLERS_DEEP) -> bool | None:
        """Whether autograd records the computation of a node; None if the project does not show it.

        A function without callers in the project records, unless it turns recording off itself, or code that does may call it.
        """
        if any(map(self._switches, self.files_around(node))):
            return None
        inner = self.around(node)
        if inner is not None:
            return inner.records
        function = self._tree.home(node)
        if isinstance(function, cst.Lambda):
            return None
        if not isinstance(function, cst.FunctionDef) or depth == 0:
            return True
        sites = [
            site
            for site in self._calls.sites(function)
            if not self._tree.contains(function, site) and not self._calls.rules_out(site, function, node)
        ]
        key = function, depth, tuple(sites)
        if key not in self._called:
            self._called[key] = self._in_calls(function, sites, depth - 1)
        return self._called[key]

    def _in_calls(self, function: cst.FunctionDef, sites: list[cst.Call], depth: int) -> bool | None:
        """Whether autograd records a function in these calls of it, and at the places that may call it."""
        found = {self.records(site, depth) for site in sites}
        if not found <= {True}:
            return found.pop() if len(found) == 1 else None
        possible = self._calls.possible_sites(function)
        return None if any(self.records(place, depth) is False for place in possible) else True

    def never_records(self, origin: Origin) -> bool:
        """Whether a value is certainly made where autograd does not record: there, or around the calls that lead there."""
        node, frame = origin.node, origin.frame
        while frame is not None:
            if (inner := self.around(node)) is not None:
                return inner.records is False
            node, frame = frame.call, frame.outer
        return self.records(node) is False

    def files_around(self, node: Node) -> list[cst.Module]:
        """The file of a node, and those that import the function that it is in."""
        function = self._tree.home(node)
        here = self._tree.root_of(node)
        if not isinstance(function, cst.FunctionDef) or not self._tree.is_at_top(function):
            return [here]
        return [here, *self._names.importers(function)]

    def _switches(self, root: cst.Module) -> bool:
        """Whether a file switches recording by a statement of its own, for all that comes after it."""
        if root not in self._switching:
            self._switching[root] = any(
                isinstance(call.func, (cst.Name, cst.Attribute))
                and isinstance(self._tree.parent[call], cst.Expr)
                and self._matches(call.func, _SET)
                for call in self._tree.within(root, cst.Call)
            )
        return self._switching[root]

    def freezes(self, region: Node) -> bool:
        """Whether code may set `requires_grad` to something other than True; reading it does not count."""
        items = self._tree.within(region, cst.AssignTarget)
        assigned = [
            statement.value
            for item in items
            if isinstance(item.target, cst.Attribute)
            and item.target.attr.value == "requires_grad"
            and isinstance(statement := self._tree.statement(item), cst.Assign)
        ]
        given = [
            call.args[0].value
            for call in self._tree.within(region, cst.Call)
            if called_name(call) == "requires_grad_" and call.args
        ]
        return not all(_is(value, "True") for value in [*assigned, *given])

    def around(self, node: Node) -> Decision | None:
        """The innermost context or decorator, within a node's own function, that switches recording."""
        above: Node = node
        for outer in self._tree.ancestors(node):
            child, above = above, outer
            if type(above) not in _MAY_SWITCH:
                continue
            if isinstance(above, cst.With) and child is above.body:
                for item in reversed(above.items):
                    if (effect := self._context(item.item)) is not None:
                        return Decision(above, _RECORDS[effect])
            if isinstance(above, (cst.Lambda, cst.ClassDef)) and child is above.body:
                return None
            if isinstance(above, cst.FunctionDef):
                if child is not above.body:
                    return None
                for decorator in above.decorators:
                    if (effect := self._decorator(decorator.decorator)) is not None:
                        return Decision(above, _RECORDS[effect])
                return None
        return None

    def _context(self, item: Node) -> Effect | None:
        called = item.func if isinstance(item, cst.Call) else item
        effect = self._torchs(called, item)
        if effect is not None or (isinstance(item, cst.Call) and _named(called, _NEUTRAL_CONTEXT)):
            return effect
        return Effect.UNKNOWN

    def _decorator(self, decorator: Node) -> Effect | None:
        called = decorator.func if isinstance(decorator, cst.Call) else decorator
        effect = self._torchs(called, decorator)
        if effect is not None or _named(called, _NEUTRAL_DECORATOR):
            return effect
        return Effect.UNKNOWN

    def _torchs(self, called: Node, whole: Node) -> Effect | None:
        if self._matches(called, _OFF):
            mode = argument(whole, "mode", 0) if isinstance(whole, cst.Call) else None
            return (
                Effect.OFF
                if mode is None or _is(mode, "True") or isinstance(mode, cst.Call)
                else Effect.UNKNOWN
            )
        if self._matches(called, _ON):
            return Effect.ON
        if self._matches(called, _SET):
            enabled = argument(whole, "mode", 0) if isinstance(whole, cst.Call) else None
            if enabled is not None and (_is(enabled, "True") or _is(enabled, "False")):
                return Effect.ON if _is(enabled, "True") else Effect.OFF
            return Effect.UNKNOWN
        return Effect.UNKNOWN if _named(called, _OFF_NAME) else None

    def _matches(self, node: Node, pattern: re.Pattern[str]) -> bool:
        return pattern.fullmatch(self._names.qualified(node) or "") is not None


def _named(node: Node, pattern: re.Pattern[str]) -> bool:
    """Whether the last name of a callee, or its whole path, matches."""
    name = dotted(node) or (node.attr.value if isinstance(node, cst.Attribute) else "")
    return pattern.fullmatch(name.rpartition(".")[2]) is not None or pattern.fullmatch(name) is not None


def _is(node: Node, constant: str) -> bool:
    return isinstance(node, cst.Name) and node.value == constant
