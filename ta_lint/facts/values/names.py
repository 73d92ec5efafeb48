"""What a name refers to: scopes, the statements that bind it, and its qualified name."""

import builtins
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal, Protocol, cast

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.reaching import MOST, Reaching
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, dotted

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_BODIES = (*FUNCTIONS, cst.ClassDef)
_DEPTH = 8  # how many aliases of aliases are followed: a longer chain is most likely a cycle

How = Literal["import", "assign", "augment", "unpack", "for", "with", "param", "def", "class", "other"]

# Where a public class is defined, and its usual public name.
_CANONICAL = (
    (regex(r"^torch\.nn\.modules\.(?:\w+\.)?(_?[A-Z]\w*)$"), r"torch.nn.\1"),
    (regex(r"^torch\.optim\.(?!lr_scheduler|swa_utils)[a-z_]+\.([A-Z]\w*)$"), r"torch.optim.\1"),
    (regex(r"^torch\.utils\.data\.(?:dataloader|dataset|sampler|distributed)\.(\w+)$"), r"torch.utils.data.\1"),
    (regex(r"^torch\.nn\.parameter\.(\w+)$"), r"torch.nn.\1"),
    (regex(r"^torch\.(?:cuda\.amp|cpu\.amp|amp|amp\.grad_scaler|cuda\.amp\.grad_scaler)\.GradScaler$"),
     "torch.amp.GradScaler"),
    (regex(r"^torch\.serialization\.(load|save)$"), r"torch.\1"),
    (regex(r"^pytorch_lightning\."), "lightning.pytorch."),
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Binding:
    """A place that binds a name.

    `node` is the binding node (a statement, a parameter, an import alias). `value` is the bound expression: the right
    side of an assignment (the whole tuple for `unpack`), the iterable of a `for`, the context of a `with`, the default
    of a parameter. `qualified` is the canonical name of an import, `written` its path as the file spells it.
    """

    how: How
    node: Node
    value: cst.BaseExpression | None = None
    qualified: str | None = None
    written: str | None = None


class _Variable:
    """The bindings of a name in the scope that owns it, in source order, prepared for questions about many uses."""

    def __init__(self, tree: Tree, bindings: list[Binding]) -> None:
        self.bindings = bindings
        self.written = [binding for binding in bindings if binding.how != "param"]
        self.numbers = [tree.interval(binding.node)[0] for binding in bindings]
        self.homes = {tree.home(binding.node) for binding in self.written}
        self.seen: dict[int, int] = {}
        """The place of the last binding that the `else` of a condition, by its number, may see of those before the condition."""
        self._begins = [_begins(tree, binding) for binding in bindings]
        for place in range(len(bindings) - 2, -1, -1):
            self._begins[place] = min(self._begins[place], self._begins[place + 1])
        self._tree = tree

    @cached_property
    def walruses(self) -> list[int]:
        """The places of the bindings by `:=`."""
        return [place for place, one in enumerate(self.bindings) if isinstance(one.node, cst.NamedExpr)]

    @cached_property
    def reaching(self) -> Reaching:
        return Reaching(self._tree, [binding.node for binding in self.written])

    def before(self, number: int) -> int:
        """How many bindings may take effect before the node with a number, and none after these."""
        return bisect_left(self._begins, number)

    def inside(self, interval: tuple[int, int]) -> range:
        """The places of the bindings in a subtree."""
        return range(bisect_left(self.numbers, interval[0]), bisect_right(self.numbers, interval[1]))


def _begins(tree: Tree, binding: Binding) -> int:
    """The number of the first node that a binding may take effect before."""
    if binding.how == "param":
        return -2
    is_in_header = isinstance(binding.node, (cst.For, cst.CompFor, cst.WithItem))
    return tree.interval(tree.statement(binding.node) if is_in_header else binding.node)[0]


class Links(Protocol):
    """What the imports of one file lead to in other files of the project: see `facts.program`."""

    def outside(self, name: str) -> str | None:
        """The full name, outside of the project, of what this file imports under a name; None if the project defines it."""

    def starred(self, modules: tuple[str, ...], name: str) -> str | None:
        """The full name, as an import would spell it, of what one of these modules of the project gives by `import *`."""

    def names(self, node: Node) -> "Names | None":
        """The names of the other file that a node is in."""

    def definition(self, name: str) -> Binding | None:
        """The one place in another file that binds what this file imports under a name."""

    def ancestors(self, name: str) -> frozenset[str] | None:
        """The full names of the classes outside of the project that an imported class of it derives from; None if it is none."""

    def may_have(self, name: str, member: str) -> bool:
        """Whether an imported class, or one that it derives from, may have an attribute, or a method such as `def step`."""

    def is_function(self, name: str) -> bool:
        """Whether what this file imports under a name is a function of the project."""

    def importers(self, name: str, called: str | None) -> list[cst.Module]:
        """The other files that import what this file binds to a name at its top, and may call something of another name."""

    def beside(self, words: tuple[str, ...]) -> list[cst.Module] | None:
        """The other files of the programs that this file is part of, with one of these words if any; None if that is not known."""

    def attributes(self) -> frozenset[str]:
        """The names of the attributes that the files which this one imports set on `self`."""


class Names:
    """The bindings of every scope in a file.

    Also answers for nodes of other files of the project, by asking the names of the file that each is in.
    """

    def __init__(self, tree: Tree, links: Links | None = None) -> None:
        self._tree = tree
        self._links = links
        self._bound: dict[str, list[Binding]] = {}  # by name, in all scopes
        self._owned: dict[str, dict[Node, list[Binding]]] = {}  # by name and scope; only names asked for
        self._scope_of_block: dict[int, Node] = {}
        self._globals: dict[Node, set[str]] = {}
        self._nonlocals: dict[str, list[Node]] = {}
        self._qualified: dict[int, str | None] = {}
        self._visible: dict[int, dict[str, list[Binding]]] = {}
        self._mentions: dict[Binding, list[cst.Name]] = {}
        self._definitions: dict[cst.Name, Binding | None] = {}
        self._variables: dict[Binding, _Variable] = {}
        self._meant: dict[tuple[Binding, bool], str | None] = {}  # by the first of several bindings
        self._starred: list[str] = []
        self.imported: set[str] = set()
        """The qualified name of everything this file imports."""
        self._collect()

    # -- building ---------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        self._collect_declarations()
        self._collect_imports()
        self._collect_assignments()
        self._collect_loops()
        self._collect_as_names()
        self._collect_definitions()
        self._collect_deletions()
        self._collect_captures()

    def _collect_declarations(self) -> None:
        for declaration in self._tree.all(cst.Global):
            names = {item.name.value for item in declaration.names}
            self._globals.setdefault(self.scope(declaration), set()).update(names)
        for nonlocal_ in self._tree.all(cst.Nonlocal):
            for item in nonlocal_.names:
                self._nonlocals.setdefault(item.name.value, []).append(self.scope(nonlocal_))

    def _collect_imports(self) -> None:
        for node in self._tree.all(cst.Import, cst.ImportFrom):
            self.imported.update(_imported_names(node))
            if isinstance(node.names, cst.ImportStar):
                self._starred.extend(_imported_names(node))
            for name, qualified, alias in _imported(node):
                binding = Binding("import", alias, qualified=_canonical(qualified), written=qualified)
                self._bind(name, binding)

    def _collect_assignments(self) -> None:
        tree = self._tree
        for assign in tree.all(cst.Assign):
            for target in assign.targets:
                self._bind_target(target.target, assign, assign.value)
        for annotated in tree.all(cst.AnnAssign):
            if annotated.value is not None:
                self._bind_target(annotated.target, annotated, annotated.value)
        for augmented in tree.all(cst.AugAssign):
            if isinstance(augmented.target, cst.Name):
                self._bind(augmented.target.value, Binding("augment", augmented, augmented.value))
        for walrus in tree.all(cst.NamedExpr):
            self._bind_target(walrus.target, walrus, walrus.value)

    def _collect_loops(self) -> None:
        for loop in self._tree.all(cst.For, cst.CompFor):
            for name in _target_names(loop.target):
                self._bind(name, Binding("for", loop, loop.iter))

    def _collect_as_names(self) -> None:
        """Those of `with` and `except`; imports are collected separately."""
        for named in self._tree.all(cst.AsName):
            item = self._tree.parent[named]
            if isinstance(item, cst.WithItem) and isinstance(named.name, cst.Name):
                self._bind(named.name.value, Binding("with", item, item.item))
            elif isinstance(item, (cst.WithItem, cst.ExceptHandler, cst.ExceptStarHandler)):
                for name in _target_names(named.name):
                    self._bind(name, Binding("other", item))

    def _collect_definitions(self) -> None:
        tree = self._tree
        for function in tree.all(cst.FunctionDef):
            self._bind(function.name.value, Binding("def", function))
        for klass in tree.all(cst.ClassDef):
            self._bind(klass.name.value, Binding("class", klass))
        for param in tree.all(cst.Param):
            self._bind(param.name.value, Binding("param", param, param.default))

    def _collect_deletions(self) -> None:
        for deleted in self._tree.all(cst.Del):
            for name in _target_names(deleted.target):
                self._bind(name, Binding("other", deleted))

    def _collect_captures(self) -> None:
        for capture in self._tree.all(cst.MatchAs, cst.MatchStar, cst.MatchMapping):
            captured = capture.rest if isinstance(capture, cst.MatchMapping) else capture.name
            if captured is not None:
                self._bind(captured.value, Binding("other", capture))

    def _bind(self, name: str, binding: Binding) -> None:
        self._bound.setdefault(name, []).append(binding)

    def _owners(self, name: str) -> dict[Node, list[Binding]]:
        """The bindings of a name by owning scope, computed on demand because most names are never asked for."""
        owned = self._owned.get(name)
        if owned is None:
            owned = self._owned[name] = {}
            for binding in self._bound.get(name, ()):
                owned.setdefault(self._owner(name, binding), []).append(binding)
            for scope in self._nonlocals.get(name, ()):  # outer first: chains end at the owner
                self._move_out(scope, owned)
            for found in owned.values():
                found.sort(key=lambda binding: self._tree.order(binding.node))
        return owned

    def _owner(self, name: str, binding: Binding) -> Node:
        if type(binding.node) is cst.Param:
            return self._tree.parent[self._tree.parent[binding.node]]
        scope = self.scope(binding.node)
        if type(binding.node) is cst.NamedExpr:  # a walrus binds outside the comprehension
            while isinstance(scope, _COMPREHENSIONS):
                scope = self._outer(scope)
        return self._tree.root if name in self._globals.get(scope, ()) else scope

    def _move_out(self, scope: Node, owned: dict[Node, list[Binding]]) -> None:
        """Move the bindings that a scope declares `nonlocal` to the function that owns the name."""
        moved = owned.pop(scope, [])
        for outer in islice(self._scopes_from(scope), 1, None):
            if outer in owned:
                owned[outer] += moved
                return

    def _bind_target(self, target: Node, statement: Node, value: cst.BaseExpression) -> None:
        if type(target) is cst.Name:
            self._bind(target.value, Binding("assign", statement, value))
        elif type(target) is not cst.Attribute:
            for name in _target_names(target):
                self._bind(name, Binding("unpack", statement, value))

    def imported_by(self, node: Node) -> set[str]:
        """The qualified names of everything that the file of a node imports."""
        other = self._other(node)
        return other.imported if other is not None else self.imported

    # -- asking -----------------------------------------------------------------------------------------------

    def scope(self, node: Node) -> Node:
        """The scope in which a name at `node` is looked up."""
        nodes, above = self._tree.nodes, self._tree.above
        number = self._tree.number.get(id(node))
        if number is None and (other := self._other(node)) is not None:
            return other.scope(node)
        below, child = None, node
        while number:  # not `ancestors`: this is the most frequent query
            number = above[number]
            outer = nodes[number]
            kind = type(outer)
            if kind is cst.IndentedBlock:  # its statements share the scope of the block
                found = self._scope_of_block.get(number)
                if found is None:
                    found = self._scope_of_block[number] = self.scope(outer)
                return found
            if kind in _COMPREHENSIONS:
                first_iterable = type(child) is cst.CompFor and child.iter is below
                if not first_iterable:  # the first iterable is evaluated outside
                    return cast(Node, outer)
            elif kind in _BODIES:
                if child is outer.body:
                    return cast(Node, outer)
            elif kind is cst.Param and node is outer.name:
                return self._tree.parent[self._tree.parent[outer]]
            below, child = child, outer
        return self._tree.root

    def _other(self, node: Node) -> "Names | None":
        """The names of the other file that a node is in; None if it is in this file, or in none."""
        if self._links is None or id(node) in self._tree.number:
            return None
        return self._links.names(node)

    def _outer(self, scope: Node) -> Node:
        return self.scope(scope)

    def _scopes(self, node: Node) -> Iterator[Node]:
        """The scopes visible from `node`, innermost first; a class body is visible only from directly inside it."""
        yield from self._scopes_from(self.scope(node))

    def _scopes_from(self, scope: Node) -> Iterator[Node]:
        yield scope
        while scope is not self._tree.root:
            scope = self._outer(scope)
            if not isinstance(scope, cst.ClassDef):
                yield scope

    def bindings(self, name: cst.Name) -> list[Binding]:
        """All bindings of a name in the scope that owns it, in source order; empty for a builtin or an unknown name."""
        if (other := self._other(name)) is not None:
            return other.bindings(name)
        owned = self._owners(name.value)
        everywhere = owned.get(self._tree.root) if len(owned) < 2 else None
        if everywhere is not None or not owned:  # bound only at module level, as imports are, or not at all
            return everywhere or []
        nearest = self.scope(name)
        visible = self._visible.setdefault(id(nearest), {})
        found = visible.get(name.value)
        if found is None:
            found = visible[name.value] = self._bindings_from(nearest, name.value, owned)
        return found

    def _bindings_from(self, nearest: Node, name: str, owned: dict[Node, list[Binding]]) -> list[Binding]:
        for scope in self._scopes_from(nearest):
            if name in self._globals.get(scope, ()):
                scope = self._tree.root
            if found := owned.get(scope):
                return found
            if scope is self._tree.root:
                break
        return []

    def mentions(self, name: cst.Name) -> list[cst.Name]:
        """All mentions of the variable that a name refers to, including its bindings, in source order."""
        if (other := self._other(name)) is not None:
            return other.mentions(name)
        found = self.bindings(name)
        if not found:
            return []
        first = found[0]
        if first not in self._mentions:
            owners = self._owners(name.value).items()
            scope = next(scope for scope, owned in owners if owned is found)
            self._mentions[first] = [
                other
                for other in self._tree.among(self._by_text[name.value], scope)
                if not self._is_label(other) and self.bindings(other) is found
            ]
        return self._mentions[first]

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        """The numbers of all name nodes by their text, in source order."""
        names: dict[str, list[int]] = {}
        for name in self._tree.all(cst.Name):
            names.setdefault(name.value, []).append(self._tree.number[id(name)])
        return names

    def is_mentioned(self, text: str) -> bool:
        """Whether the code of the file has a name with this text, also as an attribute."""
        return text in self._by_text

    def _is_label(self, name: cst.Name) -> bool:
        """Whether a name is not a variable: `b` in `a.b`, `f(b=1)`, `import b.a`, `from b import a as c`."""
        above = self._tree.parent.get(name)
        if isinstance(above, cst.Attribute):
            return name is above.attr
        if isinstance(above, cst.Arg):
            return name is above.keyword
        if isinstance(above, cst.MatchKeywordElement):
            return name is above.key
        return isinstance(above, cst.ImportFrom) or (
            isinstance(above, cst.ImportAlias) and above.asname is not None
        )

    def is_bound_in(self, name: cst.Name, region: Node) -> bool:
        """Whether a region binds the variable that a name refers to."""
        if (other := self._other(name)) is not None:
            return other.is_bound_in(name, region)
        found = self.bindings(name)
        if len(found) < 2 or id(region) not in self._tree.number:
            return any(self._tree.contains(region, binding.node) for binding in found)
        return bool(self._variable(found).inside(self._tree.interval(region)))

    def definition(self, name: cst.Name) -> Binding | None:
        """The only binding that reaches a use of a name; None if several may reach it, or none is known.

        A binding reaches if it comes before the use in an enclosing statement list, nothing in between rebinds the
        name, and no later binding comes round through a loop. If binding and use are in different functions, it
        reaches only if the name is bound once.
        """
        if (other := self._other(name)) is not None:
            return other.definition(name)
        found = self.bindings(name)
        if len(found) < 2:
            return found[0] if found else None
        if name not in self._definitions:
            self._definitions[name] = self._reaching(self._variable(found), name)
        return self._definitions[name]

    def _variable(self, bindings: list[Binding]) -> _Variable:
        first = bindings[0]
        if first not in self._variables:
            self._variables[first] = _Variable(self._tree, bindings)
        return self._variables[first]

    def reaching(self, name: cst.Name) -> list[Binding]:
        """All bindings that may reach a use of a name; empty if none is known, or if they are too many to tell.

        In a function that does not bind the name, each binding may.
        """
        if (other := self._other(name)) is not None:
            return other.reaching(name)
        found = self.bindings(name)
        if len(found) < 2:
            return found
        if (only := self.definition(name)) is not None:
            return [only]
        variable = self._variable(found)
        if variable.homes - {self._tree.home(name)}:
            return found if len(found) <= MOST else []
        standing = variable.reaching.at(name)
        if standing is None:
            return []
        nodes, passes = standing
        params = [binding for binding in found if binding.how == "param" and passes]
        reaching = {id(node) for node in nodes}
        return [*params, *(binding for binding in variable.written if id(binding.node) in reaching)]

    def _reaching(self, variable: _Variable, name: cst.Name) -> Binding | None:
        tree = self._tree
        if variable.homes - {tree.home(name)}:
            return None
        use = tree.statement(name)
        if self._is_bound_later_in(use, variable, name):
            return None
        place = self._last_before(variable, use, name)
        last = variable.bindings[place] if place >= 0 else None
        if last is None or last.how == "augment" or not self._dominates(last, name):
            return None
        for loop in tree.loops(name):
            if last.how != "param" and tree.contains(loop, last.node):
                break
            again = [loop.body, loop.test] if isinstance(loop, cst.While) else [loop.body]
            if any(variable.inside(tree.interval(part)) for part in again):  # it comes round
                return None
        return last

    def _is_bound_later_in(self, use: Node, variable: _Variable, name: cst.Name) -> bool:
        """Whether a walrus in the statement that uses a name binds it after that use."""
        if not variable.walruses:
            return False
        first, last = self._tree.interval(use)
        start = bisect_left(variable.walruses, first, key=variable.numbers.__getitem__)
        for place in variable.walruses[start:]:
            binding = variable.bindings[place]
            if variable.numbers[place] > last:
                break
            if self._tree.statement(binding.node) is use and not self._takes_effect_before(
                binding, use, name
            ):
                return True
        return False

    def _last_before(self, variable: _Variable, use: Node, name: cst.Name) -> int:
        """The place of the last binding that takes effect before a use, and not in a branch that excludes it; -1 for none.

        Branches do not exclude each other if a loop around the use contains both.
        """
        number = self._tree.number.get(id(name), -1)
        place = variable.before(number) - 1
        while place >= 0:
            binding = variable.bindings[place]
            if not self._takes_effect_before(binding, use, name):
                place -= 1
                continue
            seen = self._seen(variable, place, number) if binding.how != "param" else place
            if seen == place:
                break
            place = seen
        return place

    def _seen(self, variable: _Variable, place: int, number: int) -> int:
        """The place of the last of these bindings, up to a place, that is not in a branch which excludes the node with a number."""
        tree, numbers = self._tree, variable.numbers
        passed: list[int] = []
        asked = variable.before(number) - 1 == place
        choice = tree.alternative(number)
        while choice is not None and place >= 0:
            first, last = tree.interval(choice.body)
            if numbers[place] > last:
                break
            if numbers[place] >= first:
                if tree.loops(choice):
                    break
                place = bisect_left(numbers, first) - 1
            above = tree.number[id(choice)]
            if place < 0 or numbers[place] >= above:
                break
            if above not in variable.seen:
                passed.append(above)
            elif (seen := variable.seen[above]) <= place:
                place = seen
                break
            choice = tree.alternative(above)
        if asked:  # all bindings before: the answer holds for each use there
            variable.seen.update(dict.fromkeys(passed, place))
        return place

    def _takes_effect_before(self, binding: Binding, use: Node, name: cst.Name) -> bool:
        if binding.how == "param":
            return True
        tree = self._tree
        statement = tree.statement(binding.node)
        if isinstance(binding.node, (cst.For, cst.CompFor, cst.WithItem)):
            in_header = binding.value is not None and tree.contains(binding.value, name)
            return tree.before(statement, name) and not in_header
        if isinstance(binding.node, cst.NamedExpr):
            return tree.before(binding.node, name) and not tree.contains(binding.node, name)
        return tree.before(binding.node, name) and statement is not use

    def _dominates(self, binding: Binding, use: Node) -> bool:
        """Whether every path to `use` passes the binding: its statement list encloses the use."""
        if binding.how == "param":
            return True
        tree, node = self._tree, binding.node
        if isinstance(node, cst.For):
            return tree.contains(node.body, use)
        if isinstance(node, cst.CompFor):
            return True  # not visible outside the comprehension
        branch = self._branch(node)
        if branch is not None:
            return tree.contains(branch, use)
        if isinstance(node, cst.NamedExpr) and self._is_conditional(node):
            return False
        block = tree.block(node)
        while isinstance(holder := tree.parent.get(block), cst.With) or (
            isinstance(holder, cst.Try) and holder.body is block and not holder.handlers
        ):
            block = tree.block(holder)  # a with block is always entered
        return tree.contains(block, use)

    def _branch(self, node: Node) -> Node | None:
        """The `except`, `case` or `elif` whose header binds a name."""
        if isinstance(node, (cst.ExceptHandler, cst.ExceptStarHandler)):
            return node
        statement = self._tree.statement(node)
        if isinstance(statement, cst.Match):
            return next((case for case in statement.cases if self._tree.contains(case, node)), None)
        elif_ = isinstance(statement, cst.If) and isinstance(self._tree.parent[statement], cst.If)
        return statement if elif_ else None

    def _is_conditional(self, walrus: cst.NamedExpr) -> bool:
        """Whether the enclosing expression may skip a walrus."""
        child: Node = walrus
        for above in self._tree.ancestors(walrus):
            if isinstance(above, _COMPREHENSIONS):
                return True
            if isinstance(above, cst.BooleanOperation) and child is above.right:
                return True
            if isinstance(above, cst.IfExp) and child is not above.test:
                return True
            if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
            child = above
        return False

    def qualified(self, node: Node) -> str | None:
        """The full name of an expression (`torch.nn.functional.cross_entropy` for `F.cross_entropy`).

        Follows imports, aliases and names bound once. A builtin is `builtins.print`; a name that the project defines, or
        one that is uncertain, is None. Classes have their usual public name (`torch.optim.Adam`).
        """
        if (other := self._other(node)) is not None:
            return other.qualified(node)
        imported = self._imported_name(node)
        if imported is None or self._links is None:
            return imported
        outside = self._links.outside(imported)
        return _canonical(outside) if outside is not None and outside is not imported else outside

    def defined_elsewhere(self, node: Node) -> Binding | None:
        """The one place in another file of the project that binds what a name, or an attribute of a module, stands for."""
        if self._links is None:
            return None
        if (other := self._other(node)) is not None:
            return other.defined_elsewhere(node)
        imported = self._imported_name(node)
        return self._links.definition(imported) if imported is not None else None

    def ancestors(self, node: Node) -> frozenset[str] | None:
        """The classes outside of the project that a class of another file derives from; None if the node is no such class."""
        if (other := self._other(node)) is not None:
            return other.ancestors(node)
        imported = self._imported_name(node) if self._links is not None else None
        found = self._links.ancestors(imported) if self._links is not None and imported is not None else None
        return frozenset(map(_canonical, found)) if found is not None else None

    def may_have(self, node: Node, member: str) -> bool:
        """Whether a class of another file, or one that it derives from, may have an attribute, or a method such as `def step`."""
        if (other := self._other(node)) is not None:
            return other.may_have(node, member)
        imported = self._imported_name(node)
        return self._links is not None and imported is not None and self._links.may_have(imported, member)

    def is_function_elsewhere(self, node: Node) -> bool:
        """Whether a name stands for a function of another file."""
        if (other := self._other(node)) is not None:
            return other.is_function_elsewhere(node)
        imported = self._imported_name(node)
        return self._links is not None and imported is not None and self._links.is_function(imported)

    def importers(
        self, definition: cst.FunctionDef | cst.ClassDef, called: str | None = None
    ) -> list[cst.Module]:
        """The other files of the project that import a function or class from the top of its file; with `called`, those that
        may call something of this name.
        """
        if self._links is None:
            return []
        if (other := self._other(definition)) is not None:
            return other.importers(definition, called)
        return self._links.importers(definition.name.value, called)

    def beside(self, *words: str, around: Node | None = None) -> list[cst.Module] | None:
        """The other files of the programs that the file of a node, or this file, is part of, those with one of these words if any.

        A program is a file that imports this one, directly or not, with all that it imports. None if they are too many, or
        if one cannot be read.
        """
        if around is not None and (other := self._other(around)) is not None:
            return other.beside(*words)
        return self._links.beside(words) if self._links is not None else []

    def attributes_of(self, node: Node) -> frozenset[str]:
        """The names of attributes that objects of classes may have which the file of a node imports."""
        other = self._other(node)
        return other.attributes_of_imports if other is not None else self.attributes_of_imports

    @cached_property
    def attributes_of_imports(self) -> frozenset[str]:
        """The names of attributes that objects of imported classes may have."""
        return self._links.attributes() if self._links is not None else frozenset()

    def _imported_name(self, node: Node) -> str | None:
        """As `qualified`, by the imports of the file itself."""
        if type(node) is not cst.Name and type(node) is not cst.Attribute:
            return None
        number = self._tree.number.get(id(node))
        if number in self._qualified:
            return self._qualified[number]
        found = self._resolve(node, _DEPTH)
        qualified = _canonical(found) if found is not None else None
        if number is not None:  # a string annotation is in a tree of its own
            self._qualified[number] = qualified
        return qualified

    def written(self, node: Node) -> str | None:
        """As `qualified`, but by the path in the file: `torch.cuda.amp.GradScaler`, not `torch.amp.GradScaler`."""
        if (other := self._other(node)) is not None:
            return other.written(node)
        return self._resolve(node, _DEPTH, written=True)

    def imports(self) -> Iterator[tuple[str, cst.ImportAlias]]:
        """The full name of each import, as the file spells it, and its alias node."""
        for node in self._tree.all(cst.Import, cst.ImportFrom):
            if isinstance(node, cst.Import):
                yield from ((dotted(alias.name) or "", alias) for alias in node.names)
            else:
                yield from ((qualified, alias) for _, qualified, alias in _imported(node))

    def visible(self, at: Node) -> Iterator[dict[str, list[Binding]]]:
        """The bindings by name in each scope of this file that is visible from a node, innermost scope first."""
        for scope in self._scopes(at):
            yield self._of_scope.get(scope, {})

    def exported(self, name: str) -> list[Binding]:
        """The bindings of a name at the top of the file, which other files can import."""
        return self._owners(name).get(self._tree.root, [])

    def is_bound(self, name: str) -> bool:
        """Whether any scope of the file binds a name."""
        return bool(self._owners(name))

    @cached_property
    def _of_scope(self) -> dict[Node, dict[str, list[Binding]]]:
        """All bindings by scope and name."""
        found: dict[Node, dict[str, list[Binding]]] = {}
        for name in self._bound:
            for scope, bindings in self._owners(name).items():
                found.setdefault(scope, {})[name] = bindings
        return found

    @cached_property
    def _nameless(self) -> frozenset[str]:
        """The names that stand for a full name nowhere in the file, such as `self`: nothing imports or assigns them."""
        return frozenset(
            name
            for name, bindings in self._bound.items()
            if not hasattr(builtins, name)
            and all(binding.how not in ("import", "assign") for binding in bindings)
        )

    def _resolve(self, node: Node, depth: int, written: bool = False) -> str | None:
        if depth == 0:
            return None
        if type(node) is cst.Attribute:
            base = self._resolve(node.value, depth - 1, written)
            return f"{base}.{node.attr.value}" if base is not None else None
        if type(node) is not cst.Name or node.value in self._nameless:
            return None
        bindings = self.bindings(node)
        if not bindings:
            return self._from_star(node.value) or (
                f"builtins.{node.value}" if hasattr(builtins, node.value) else None
            )
        only = bindings[0]
        if len(bindings) == 1 and only.how == "assign" and only.value is not None:
            return self._resolve(only.value, depth - 1, written)
        if only.how == "import" and len(bindings) > 1 and (reaching := self.definition(node)) is only:
            return _imported_by([reaching], written)  # import model; model = model.Net()
        if (only, written) not in self._meant:
            self._meant[only, written] = _imported_by(bindings, written)
        return self._meant[only, written]

    def _from_star(self, name: str) -> str | None:
        """What the file has by `from module import *`, where the module is of the project."""
        if not self._starred or self._links is None or name.startswith("_"):
            return None
        return self._links.starred(tuple(self._starred), name)


@lru_cache(4096)
def _canonical(qualified: str) -> str:
    for pattern, replacement in _CANONICAL:
        qualified = pattern.sub(replacement, qualified)
    return qualified


def _imported_by(bindings: list[Binding], written: bool) -> str | None:
    """The one full name that all imports among bindings bind; None if others bind more than a missing import's constant."""
    if len(bindings) == 1:  # the usual case: an import, or a parameter
        return bindings[0].written if written else bindings[0].qualified
    imported = {
        binding.written if written else binding.qualified for binding in bindings if binding.how == "import"
    }
    others = [binding for binding in bindings if binding.how != "import"]
    optional = all(binding.how == "assign" and _is_constant(binding.value) for binding in others)
    return imported.pop() if len(imported) == 1 and optional else None


def _is_constant(node: Node | None) -> bool:
    """`None`, `True` or `False`, which replaces a missing optional import."""
    return isinstance(node, cst.Name) and node.value in ("None", "True", "False")


def _target_names(target: Node) -> Iterator[str]:
    stack = [target]
    while stack:
        node = stack.pop()
        if type(node) is cst.Name:
            yield node.value
        elif type(node) is cst.Tuple or type(node) is cst.List:
            stack += [element.value for element in node.elements]


def _imported_names(node: cst.Import | cst.ImportFrom) -> Iterator[str]:
    """The full name of each import of a statement; for `from x import *` that of the module."""
    if isinstance(node, cst.Import):
        yield from (dotted(alias.name) or "" for alias in node.names)
    elif isinstance(node.names, cst.ImportStar):
        yield _package(node)
    else:
        yield from (qualified for _, qualified, _ in _imported(node))


def _package(node: cst.ImportFrom) -> str:
    return "." * len(node.relative) + (dotted(node.module) or "" if node.module is not None else "")


def _imported(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str, cst.ImportAlias]]:
    """The local name, qualified name and node of each import; relative imports keep their dots."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            full = dotted(alias.name) or ""
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                yield alias.asname.name.value, full, alias
            else:
                top = full.partition(".")[0]
                yield top, top, alias
        return
    if isinstance(node.names, cst.ImportStar):
        return
    package = _package(node)
    for alias in node.names:
        imported = dotted(alias.name) or ""
        local = alias.asname.name if alias.asname is not None else alias.name
        if isinstance(local, cst.Name):
            joint = "" if package.endswith(".") else "."
            yield local.value, f"{package}{joint}{imported}", alias
