"""What becomes of an object after it is made: which of its attributes code reads, wherever the object goes.

Followed forward through names, attributes of `self`, what frameworks hand back, and the functions and classes of the project
that it is given to or returned from. An object that gets out of sight may be used in any way.
"""

from itertools import islice

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import Calls
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, attribute_of_self, is_name

_MOST = 200  # places of one object that are looked at

# These look at an object and keep nothing of it.
_LOOKS = regex(r"builtins\.(print|repr|str|type|id|len|isinstance|hasattr|bool)")

Uses = dict[str, list[cst.Attribute]]
"""The attributes of an object that code reads, by name."""


class _OutOfSight(Exception):
    """The object goes where it cannot be followed."""


class Whereabouts:
    """Queries about the further way of objects that this file makes."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._uses: dict[Node, list[Node]] = {}  # by the first mention of a variable

    @property
    def _calls(self) -> Calls:
        return self._kinds.calls

    def uses(self, made: cst.Call) -> Uses | None:
        """The attributes that code reads of the object that a call makes; None where it gets out of sight."""
        found: Uses = {}
        pending: list[Node] = [made]
        seen: set[Node] = set()
        try:
            while pending:
                node = pending.pop()
                if node in seen:
                    continue
                seen.add(node)
                if len(seen) > _MOST:
                    return None
                above = self._tree.parent[node]
                if isinstance(above, cst.Attribute) and above.value is node:
                    found.setdefault(above.attr.value, []).append(above)
                else:
                    pending += self._next(node, above)
        except _OutOfSight:
            return None
        return found

    def _next(self, node: Node, above: Node) -> list[Node]:
        """The expressions that give the object on from where it stands."""
        if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is node:
            targets = (
                [item.target for item in above.targets] if isinstance(above, cst.Assign) else [above.target]
            )
            return [use for target in targets for use in self._bound(target)]
        if isinstance(above, cst.NamedExpr) and above.value is node:
            return [above, *self._bound(above.target)]
        if isinstance(above, cst.IfExp):
            return [] if above.test is node else [above]
        if isinstance(above, cst.BooleanOperation):
            return [above]
        if isinstance(above, cst.Element) and isinstance(row := self._tree.parent[above], cst.Tuple):
            return self._from_tuple(row, row.elements.index(above))
        if isinstance(above, cst.Arg):
            return self._given(above)
        if isinstance(above, cst.Return):
            return [*self._sites(above)]
        if _only_looks(above):
            return []
        raise _OutOfSight

    def _bound(self, target: Node) -> list[Node]:
        """The uses of the variable, or attribute of `self`, that an assignment gives the object to."""
        if isinstance(target, cst.Name):
            if self._names.scope(target) is self._tree.root_of(target) and self._may_be_imported(target):
                raise _OutOfSight
            mentions = self._names.mentions(target)
            first = mentions[0] if mentions else target
            if first not in self._uses:
                uses = (use for use in mentions if not self._is_bound_at(use))
                self._uses[first] = list(islice(uses, _MOST + 1))
            return self._uses[first]
        name, klass = attribute_of_self(target), self._tree.enclosing(target, cst.ClassDef)
        if name is None or klass is None or self._reads_by_name(klass):
            raise _OutOfSight
        elsewhere = self._classes.mentions_elsewhere(klass, name)
        if elsewhere is None or not self._classes.is_whole(klass):
            raise _OutOfSight
        here = [
            node for node in self._classes.attributes_of(klass, name) if self._classes.may_be_of(node, klass)
        ]
        return [node for node in (*here, *elsewhere) if not self._is_bound_at(node)]

    def _may_be_imported(self, name: cst.Name) -> bool:
        """Whether another file of the project reads a variable at the top of this one."""
        others = self._names.beside(name.value)
        return others is None or bool(others)

    def _is_bound_at(self, mention: Node) -> bool:
        above = self._tree.parent[mention]
        if isinstance(above, cst.Element):  # of a tuple that is a target
            row = self._tree.parent[above]
            return isinstance(self._tree.parent[row], cst.AssignTarget)
        return isinstance(
            above, (cst.AssignTarget, cst.Param, cst.Del, cst.Global, cst.Nonlocal, cst.NameItem)
        ) or (isinstance(above, (cst.AnnAssign, cst.NamedExpr)) and above.target is mention)

    def _reads_by_name(self, klass: cst.ClassDef) -> bool:
        """Whether code of a class reads attributes of `self` by names that it makes: `getattr(self, name)`, `vars(self)`."""
        for call in self._tree.within(klass, cst.Call):
            reads = is_name(call.func, "getattr") or is_name(call.func, "vars")
            if reads and call.args and is_name(call.args[0].value, "self"):
                return True
        return any(node.attr.value == "__dict__" for node in self._tree.within(klass, cst.Attribute))

    def _from_tuple(self, row: cst.Tuple, place: int) -> list[Node]:
        """The uses of one part of a tuple that is unpacked: at once, or by those who call the function that returns it."""
        if any(isinstance(element, cst.StarredElement) for element in row.elements):
            raise _OutOfSight
        above = self._tree.parent[row]
        if isinstance(above, cst.Assign):
            return self._unpacked(above, place, len(row.elements))
        if isinstance(above, cst.Return):
            return [use for call in self._sites(above) for use in self._part(call, place, len(row.elements))]
        raise _OutOfSight

    def _part(self, call: cst.Call, place: int, size: int) -> list[Node]:
        statement = self._tree.parent[call]
        if not isinstance(statement, cst.Assign) or statement.value is not call:
            raise _OutOfSight
        return self._unpacked(statement, place, size)

    def _unpacked(self, statement: cst.Assign, place: int, size: int) -> list[Node]:
        found: list[Node] = []
        for item in statement.targets:
            row = item.target
            if not isinstance(row, cst.Tuple) or len(row.elements) != size:
                raise _OutOfSight
            if any(isinstance(element, cst.StarredElement) for element in row.elements):
                raise _OutOfSight
            found += self._bound(row.elements[place].value)
        return found

    def _given(self, arg: cst.Arg) -> list[Node]:
        """The uses of the object in what a call runs that is given it."""
        call = self._tree.parent[arg]
        if not isinstance(call, cst.Call) or arg.star:
            raise _OutOfSight
        if _LOOKS.fullmatch(self._names.qualified(call.func) or "") or self._is_scheduled(arg, call):
            return []
        if arg.value in (prepared := self._kinds.prepared(call)):
            place = prepared.index(arg.value)
            return [call] if len(prepared) == 1 else self._part(call, place, len(prepared))
        function = self._calls.callee(call) or self._constructor(call)
        if function is None:
            raise _OutOfSight
        params = [
            param for param, value in self._calls.arguments(call, function).items() if value is arg.value
        ]
        if len(params) != 1:
            raise _OutOfSight
        return [mention for mention in self._names.mentions(params[0].name) if not self._is_bound_at(mention)]

    def _is_scheduled(self, arg: cst.Arg, call: cst.Call) -> bool:
        """Whether the object is the optimizer of a learning rate scheduler that is made here."""
        is_optimizer = arg.keyword.value == "optimizer" if arg.keyword is not None else arg is call.args[0]
        return is_optimizer and self._kinds.kind(call) is Kind.SCHEDULER

    def _constructor(self, call: cst.Call) -> cst.FunctionDef | None:
        klass = self._classes.local(call.func)
        return self._classes.method(klass, "__init__") if klass is not None else None

    def _sites(self, statement: cst.Return) -> list[cst.Call]:
        """The calls of the function that returns the object."""
        function = self._tree.enclosing(statement, *FUNCTIONS)
        if (
            not isinstance(function, cst.FunctionDef)
            or function.decorators
            or function.asynchronous is not None
        ):
            raise _OutOfSight
        sites = self._calls.sites(function)
        if not sites or not all(self._is_called(mention, sites) for mention in self._mentions(function)):
            raise _OutOfSight
        return sites

    def _mentions(self, function: cst.FunctionDef) -> list[Node]:
        """The places of this file that may mean a function, without its definition."""
        if isinstance(self._tree.home(function), cst.ClassDef):
            return [*self._classes.mentions(function.name.value)]
        return [mention for mention in self._names.mentions(function.name) if mention is not function.name]

    def _is_called(self, mention: Node, sites: list[cst.Call]) -> bool:
        above = self._tree.parent[mention]
        return isinstance(above, cst.Call) and above.func is mention and above in sites


def _only_looks(above: Node) -> bool:
    """Whether a statement or expression reads no more of an object than whether it is there."""
    return isinstance(
        above,
        (
            cst.Expr,
            cst.If,
            cst.Assert,
            cst.Comparison,
            cst.ComparisonTarget,
            cst.UnaryOperation,
            cst.FormattedStringExpression,
            cst.Del,
        ),
    )
