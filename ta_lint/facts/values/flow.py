"""Where values come from: through names, branches, loops, containers, attributes and the functions of the project.

The interpretation runs backward, from the expression that a rule asks about, and only as far as it has to: a function that
nobody asks about costs nothing. Its state is a set of origins for each expression; ways that meet are joined, and a loop adds
what comes round, until nothing new comes. What is not understood is an origin of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.entries import TAKES, Entries
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Binding, Names
from ta_lint.facts.values.reaching import Reaching
from ta_lint.facts.values.value import Frame, Origin, Path, Value, joined
from ta_lint.syntax.tree import (
    FUNCTIONS,
    Node,
    Tree,
    argument,
    attribute_of_self,
    dotted,
    is_name,
    literal_text,
    spreads,
)

_SAVED, _SAVES = "hparams", "save_hyperparameters"
_CALLS_DEEP = 3
_BUDGET = 80  # expressions visited for one answer: most need fewer than ten
_MOST = 24  # origins of one value
_SITES = 5  # calls of a function that are looked at
_NOTHING = Value()
_Question = tuple[Node, Path, Frame | None]

# Builtins that hand on all elements of their first argument, and those that pair elements up.
_SAME_ELEMENTS = frozenset(
    f"builtins.{name}" for name in ("iter", "list", "reversed", "sorted", "set", "tuple", "filter")
)
_WRAPS = regex(r"tqdm(\.\w+)*\.(tqdm|trange)|rich\.progress\.track")
_DEQUES = frozenset({"collections.deque"})
_MAPPINGS = frozenset({"builtins.dict", "collections.OrderedDict", "types.SimpleNamespace"})

# Methods of containers that return all elements.
_GIVES_ALL = frozenset({"values", "items", "copy"})

# Methods that return a module, or a batch of named tensors, on another device: its parts are as before.
_MOVES = frozenset({"cpu", "cuda", "to"})

# Attributes of tensors: what they give is no element of what they are asked of.
_OF_TENSORS = frozenset(
    "T data device dtype grad grad_fn is_cuda is_leaf itemsize layout mT ndim requires_grad shape".split()
)

# Decorators that leave what a function returns as it is.
_KEEPS_RESULT = regex(
    r"builtins\.(staticmethod|classmethod|property)|torch\.(no_grad|enable_grad|inference_mode|compile)|"
    r"torch\.jit\.\w+|torch\.(cuda\.)?(amp\.)?(custom_fwd|autocast)|typing\.(override|final)|abc\.abstractmethod|"
    r"functools\.(cache|lru_cache|wraps)"
)

Constant = TypeVar("Constant", str, float)

_FIELDS = regex(r"dataclasses\.field|attrs?\.(field|ib|attrib)")
_DATACLASSES = regex(r"dataclasses\.dataclass|attrs?\.(define|frozen|s|dataclass|mutable)")


class ValueFlow:
    """Follows values to their origins."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self.entries = Entries(tree, names, kinds)
        self._known: dict[_Question, Value] = {}
        self._frames: dict[tuple[cst.Call, Frame | None], Frame] = {}
        self._open: set[_Question] = set()
        self._meets: set[_Question] = set()  # what is asked for while it is being answered
        self._budget = 0
        self._attributes: dict[
            tuple[cst.ClassDef, str, cst.FunctionDef], tuple[dict[Node, Node], Reaching]
        ] = {}  # what a function assigns to an attribute

    def of(self, node: Node, path: Path = (), frame: Frame | None = None) -> Value:
        """The value of an expression, or of the part of it to which a path leads, in a call of its function or in any."""
        if not self._open:
            self._budget = _BUDGET
        return self._of(node, path, frame)

    def argument(self, call: cst.Call, keyword: str, place: int) -> Value:
        """What a call gives by a keyword, or at a place, also out of `*args` and `**kwargs`; nothing if it gives none."""
        if not self._open:
            self._budget = _BUDGET
        given = self._given(call, keyword, place)
        spread: list[tuple[Node, Path]] = [(arg.value, (keyword,)) for arg in call.args if arg.star == "**"]
        found = [self._of(*way, None) for way in ([given] if given is not None else spread)]
        return joined(
            value for value in found if not all(self._is_without(o, keyword) for o in value.origins)
        )

    def _is_without(self, origin: Origin, keyword: str) -> bool:
        """Whether an origin is the entry of a dictionary that certainly has none by this keyword."""
        node = origin.node
        if origin.path != (keyword,):
            return False
        if isinstance(node, cst.Dict):
            keys = [self.entries.literal(e.key) for e in node.elements if isinstance(e, cst.DictElement)]
            return len(keys) == len(node.elements) and None not in keys and keyword not in keys
        if not isinstance(node, cst.Call) or self._names.qualified(node.func) not in _MAPPINGS:
            return False
        return all(arg.keyword is not None and arg.keyword.value != keyword for arg in node.args)

    def constant(self, node: Node, asked: Callable[[Node], Constant | None]) -> Constant | None:
        """The constant that all ways to a value lead to, as `asked` tells of each; None if they lead to several, or into a container."""
        ways = {None if one.path else asked(one.node) for one in self.of(node).origins}
        return ways.pop() if len(ways) == 1 else None

    def passed(self, call: cst.Call, keyword: str, place: int = -1) -> Node | None:
        """The expression that a call gives so, also out of `**kwargs`; None if it gives none, one of several, or one out of sight."""
        given = self._given(call, keyword, place)
        if given is None or not given[1]:
            return given[0] if given is not None else None
        origins = self.argument(call, keyword, place).origins
        return origins[0].node if len(origins) == 1 and not origins[0].path else None

    def lacks(self, call: cst.Call, keyword: str) -> bool:
        """Whether a call certainly gives nothing by a keyword: neither itself nor out of `**kwargs`, whose keys are all in sight."""
        return not any(arg.star == "*" for arg in call.args) and not self.argument(call, keyword, -1).origins

    def _of(self, node: Node, path: Path, frame: Frame | None) -> Value:
        if frame is not None and not self._tree.contains(frame.function, node):
            frame = None
        key = (node, path, frame)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            self._meets.add(key)
            return _NOTHING  # what comes round has come in by another way
        self._budget -= 1
        unknown = Value((Origin(node, path, frame),))
        if self._budget < 0:
            return unknown
        self._open.add(key)
        try:
            found = self._step(node, path, frame)
        finally:
            self._open.discard(key)
        self._meets.discard(key)
        if isinstance(node, (cst.Name, cst.Attribute)):
            found = Value(found.origins, (*found.aliases, node))
        if not found.origins or len(found.origins) > _MOST:
            found = Value(unknown.origins, found.aliases)
        if not self._meets and self._budget >= 0:
            self._known[key] = found
        return found

    def _step(self, node: Node, path: Path, frame: Frame | None) -> Value:
        if isinstance(node, cst.Call):
            return self._call(node, path, frame)
        if isinstance(node, cst.Name):
            return self._name(node, path, frame)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, path, frame)
        if isinstance(node, cst.Subscript):
            return self._subscript(node, path, frame)
        if isinstance(node, (cst.NamedExpr, cst.Await)):
            return self._of(node.value if isinstance(node, cst.NamedExpr) else node.expression, path, frame)
        if isinstance(node, cst.IfExp):
            ways = [way for way in (node.body, node.orelse) if not self._is_ruled_out(way, frame)]
            return joined(self._of(way, path, frame) for way in ways)
        if isinstance(node, cst.BooleanOperation):
            return self._of(node.left, path, frame).join(self._of(node.right, path, frame))
        if isinstance(node, cst.Param):
            return self._parameter(node, path, frame)
        if path and (found := self._element(node, path, frame)) is not None:
            return found
        return _itself(node, path, frame)

    def _is_ruled_out(self, way: Node, frame: Frame | None) -> bool:
        """Whether the call of a frame sets the condition for a way so that it is not taken."""
        if frame is None or not isinstance(frame.function, cst.FunctionDef):
            return False
        return self._kinds.calls.rules_out(frame.call, frame.function, way)

    # -- elements of containers in the source -----------------------------------------------------------------

    def _element(self, node: Node, path: Path, frame: Frame | None) -> Value | None:
        """The element of a literal to which a path leads; nothing if it has none there, None for what is no literal."""
        if isinstance(node, (cst.Tuple, cst.List, cst.Set)):
            return self._placed(
                [(e.value, isinstance(e, cst.StarredElement)) for e in node.elements], path, frame
            )
        if isinstance(node, cst.Dict):
            return self._entry(node, path, frame)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
            return self._of(node.elt, path[1:], frame)
        if isinstance(node, cst.DictComp):
            return self._of(node.value, path[1:], frame)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.BitOr)):
            sides = (node.left, node.right)
            if any(isinstance(side, (cst.List, cst.Tuple, cst.Dict)) for side in sides):
                rest = (None, *path[1:]) if isinstance(node.operator, cst.Add) else path
                return joined(self._of(side, rest, frame) for side in sides)
        return None

    def _placed(self, elements: Sequence[tuple[Node, bool]], path: Path, frame: Frame | None) -> Value:
        """The value at a place of `(a, *rest, b)`, each element with whether it is starred."""
        place, rest = path[0], path[1:]
        if isinstance(place, str):
            return _NOTHING
        if place is not None and place < 0:
            behind = elements[place:] if -place <= len(elements) else []
            if any(starred for _, starred in behind):
                place = None
            else:
                return self._of(behind[0][0], rest, frame) if behind else _NOTHING
        if place is not None:
            before = [starred for _, starred in elements[: place + 1]]
            if not any(before):
                return self._of(elements[place][0], rest, frame) if place < len(elements) else _NOTHING
            first = before.index(True)
            if first == len(elements) - 1:  # the last one is spread
                return self._of(elements[first][0], (place - first, *rest), frame)
        return joined(
            self._of(value, (None, *rest) if starred else rest, frame) for value, starred in elements
        )

    def _entry(self, node: cst.Dict, path: Path, frame: Frame | None) -> Value:
        key, rest = path[0], path[1:]
        found: list[Value] = []
        for element in reversed(node.elements):
            if isinstance(element, cst.StarredDictElement):
                found.append(self._of(element.value, path, frame))
                continue
            name = self.entries.literal(element.key) if isinstance(element, cst.DictElement) else None
            if key is None or name is None or name == key:
                found.append(self._of(element.value, rest, frame))
            if key is not None and name == key:
                break
        return joined(found)

    # -- names ------------------------------------------------------------------------------------------------

    def _name(self, name: cst.Name, path: Path, frame: Frame | None) -> Value:
        bindings = self._reaching(name)
        if not bindings or bindings[0].how in ("import", "def", "class"):
            return _itself(name, path, frame)
        written, replaced = self._written(name, path, frame) if path else (_NOTHING, False)
        if replaced:
            return written
        found = joined(self._bound(binding, name, path, frame) for binding in bindings)
        if not written.origins:
            return found
        return written.join(_filled(found, path))

    def _reaching(self, name: cst.Name) -> list[Binding]:
        """The bindings that may reach a use of a name. After `model = model.Net()` a function no longer sees the file."""
        found = self._names.reaching(name)
        return found[1:] if self._kinds.is_taken_over(found) else found

    def _bound(self, binding: Binding, name: cst.Name, path: Path, frame: Frame | None) -> Value:
        """What a binding gives a name."""
        if isinstance(binding.node, cst.Param):
            return self._parameter(binding.node, path, frame)
        if binding.value is None or binding.how not in ("assign", "unpack", "for", "with"):
            return _itself(binding.node, path, frame)
        if binding.how in ("assign", "with"):
            return self._of(binding.value, path, frame)
        if binding.how == "for":
            target = binding.node.target if isinstance(binding.node, (cst.For, cst.CompFor)) else None
            inner = _place_of(target, name.value)
            if inner is None:
                return _itself(binding.node, path, frame)
            found = self._items(binding.value, (*inner, *path), frame).origins
            given = Origin(binding.node, (*inner, *path), frame)
            return joined(Value((given if o.path[:1] == (None,) else o,)) for o in found)
        return self._unpacked(binding.node, name.value, path, frame)

    def _unpacked(self, statement: Node, variable: str, path: Path, frame: Frame | None) -> Value:
        """What `variable` gets of `a, b = pair`."""
        targets = [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else []
        for target in targets:
            inner = _place_of(target, variable)
            if inner is not None and isinstance(statement, cst.Assign):
                return self._of(statement.value, (*inner, *path), frame)
        return _itself(statement, path, frame)

    def _items(self, iterable: Node, path: Path, frame: Frame | None) -> Value:
        """What a loop over an iterable gives to its target, or to the part of it to which a path leads."""
        called = self._names.qualified(iterable.func) if isinstance(iterable, cst.Call) else None
        if isinstance(iterable, cst.Call) and called == "builtins.enumerate" and iterable.args:
            if path[:1] != (1,):
                return _itself(iterable, (None, *path), frame)
            return self._items(iterable.args[0].value, path[1:], frame)
        if isinstance(iterable, cst.Call) and called == "builtins.zip" and path and isinstance(path[0], int):
            if path[0] >= len(iterable.args) or any(arg.star for arg in iterable.args):
                return _itself(iterable, (None, *path), frame)
            return self._items(iterable.args[path[0]].value, path[1:], frame)
        if isinstance(iterable, cst.Call) and _WRAPS.fullmatch(called or "") and iterable.args:
            return self._items(iterable.args[0].value, path, frame)
        return self._of(iterable, (None, *path), frame)

    # -- what is written into containers ----------------------------------------------------------------------

    def _written(self, variable: Node, path: Path, frame: Frame | None) -> tuple[Value, bool]:
        """What code puts into the entry of a variable to which a path leads, and whether that is all it can be."""
        puts = [put for put in self.entries.into(variable) if put.meets(path)]
        exact = [put.node for put in puts if put.is_exactly(path)]
        replaced = False
        if exact and all(self._tree.home(node) is self._tree.home(variable) for node in exact):
            standing = Reaching(self._tree, exact).at(variable)
            if standing is None:
                return _itself(variable, path, frame), True
            nodes, passes = standing
            gone = {id(node) for node in exact} - {id(node) for node in nodes}
            puts = [put for put in puts if id(put.node) not in gone or not put.is_exactly(path)]
            replaced = not passes
        return joined(self._of(put.value, put.rest(path), frame) for put in puts), replaced

    # -- attributes and elements ------------------------------------------------------------------------------

    def _subscript(self, node: cst.Subscript, path: Path, frame: Frame | None) -> Value:
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            return self._of(node.value, (":", *path), frame)
        return self._of(node.value, (self.entries.key(node), *path), frame)

    def _attribute(self, node: cst.Attribute, path: Path, frame: Frame | None) -> Value:
        if self._names.qualified(node) is not None:
            return _itself(node, path, frame)
        name = attribute_of_self(node)
        if name is None and node.attr.value in _OF_TENSORS:
            return _itself(node, path, frame)
        if name is None:
            return self._of(node.value, (node.attr.value, *path), frame)
        klass = self._tree.enclosing(node, cst.ClassDef)
        if klass is None or not self._classes.hold(name, node):
            return _itself(node, path, frame)
        written, replaced = self._written(node, path, frame) if path else (_NOTHING, False)
        if replaced:
            return written
        found = self._kept(klass, name, node, path, frame)
        if not found.origins and name == _SAVED and path:
            found = self._saved(klass, path, frame)
        if not written.origins:
            return found if found.origins else _itself(node, path, frame)
        return written.join(_filled(found, path))

    def _kept(
        self, klass: cst.ClassDef, name: str, use: Node | None, path: Path, frame: Frame | None
    ) -> Value:
        """What the methods of a class assign to an attribute of `self`; in one of them, what may stand at a use of it."""
        values = self._classes.attribute(klass, name)
        if not values and (method := self._classes.property(klass, name)) is not None:
            return self.returned(method, path)
        if use is not None:
            values = self._standing(klass, name, values, use)
        return joined(self._of_statement(value, name, path, frame) for value in values)

    def _saved(self, klass: cst.ClassDef, path: Path, frame: Frame | None) -> Value:
        """An entry of `self.hparams` of Lightning: the parameter of `__init__` that `save_hyperparameters` keeps there, or a part of what it is given."""
        init = self._classes.method(klass, "__init__")
        calls = [
            call
            for call in (self._tree.own(init, cst.Call) if init is not None else ())
            if dotted(call.func) == f"self.{_SAVES}"
        ]
        if init is None or len(calls) != 1:
            return _NOTHING
        given = [arg.value for arg in calls[0].args if arg.keyword is None]
        named = [literal_text(value) for value in given]
        if len(given) == 1 and named[0] is None:
            return self._of(given[0], path, frame)
        param = next(
            (one for one in (*init.params.params, *init.params.kwonly_params) if one.name.value == path[0]),
            None,
        )
        chosen = all(arg.keyword is None or arg.keyword.value == "logger" for arg in calls[0].args)
        is_kept = chosen and (not given or path[0] in named)
        return self._parameter(param, path[1:], frame) if param is not None and is_kept else _NOTHING

    def _standing(self, klass: cst.ClassDef, name: str, values: list[Node], use: Node) -> list[Node]:
        """The assignments to an attribute that may stand at a use: those of its own function that reach it, and of others."""
        tree, home = self._tree, self._tree.home(use)
        if not isinstance(home, cst.FunctionDef):
            return values
        key = (klass, name, home)
        if key not in self._attributes:
            own = {value: tree.statement(value) for value in values if tree.home(value) is home}
            self._attributes[key] = own, Reaching(tree, list(own.values()))
        own, writes = self._attributes[key]
        if not own:
            return values
        standing = writes.at(use)
        if standing is None:
            return []
        nodes, passes = standing
        found = [value for value, statement in own.items() if statement in nodes]
        others = [value for value in values if value not in own]
        if not passes:  # `__init__` has run before
            others = [value for value in others if not self._is_of_init(value)]
        return found + others

    def _is_of_init(self, value: Node) -> bool:
        home = self._tree.home(value)
        return isinstance(home, cst.ClassDef) or (
            isinstance(home, cst.FunctionDef) and home.name.value == "__init__"
        )

    def _of_statement(self, value: Node, name: str, path: Path, frame: Frame | None) -> Value:
        if isinstance(value, cst.Assign):
            return self._unpacked(value, f"self.{name}", path, frame)
        return self._of(value, path, frame)

    # -- calls ------------------------------------------------------------------------------------------------

    def _call(self, call: cst.Call, path: Path, frame: Frame | None) -> Value:
        called = self._names.qualified(call.func)
        if called is not None:
            found = self._of_builtin(call, called, path, frame) if path or called == "builtins.next" else None
            return found if found is not None else _itself(call, path, frame)
        if isinstance(call.func, cst.Attribute):
            found = self._of_container(call, call.func, path, frame)
            if found is not None:
                return found
        found = self._of_function(call, path, frame)
        return found if found is not None else _itself(call, path, frame)

    def _of_builtin(self, call: cst.Call, called: str, path: Path, frame: Frame | None) -> Value | None:
        first = (
            call.args[0].value
            if call.args and call.args[0].keyword is None and not call.args[0].star
            else None
        )
        if called in _MAPPINGS:
            return self._mapped(call, first, path, frame)
        if first is None:
            return None
        if called in _DEQUES or called in _SAME_ELEMENTS:
            reordered = called in ("builtins.sorted", "builtins.reversed", "builtins.set", "builtins.filter")
            value = call.args[-1].value if called == "builtins.filter" else first
            return self._of(value, (None, *path[1:]) if reordered else path, frame)
        if called == "builtins.next":
            return self._items(first, path, frame)
        if called in ("builtins.zip", "builtins.enumerate") and path[0] is None and len(path) > 1:
            return self._items(call, path[1:], frame)
        if called == "builtins.getattr" and len(call.args) > 1 and (name := literal_text(call.args[1].value)):
            return self._of(first, (name, *path), frame)
        return None

    def _mapped(self, call: cst.Call, first: Node | None, path: Path, frame: Frame | None) -> Value | None:
        """An entry of `dict(a=1, **others)`."""
        key, rest = path[0], path[1:]
        found: list[Value] = []
        for arg in call.args:
            if arg.keyword is not None and (key is None or arg.keyword.value == key):
                found.append(self._of(arg.value, rest, frame))
            elif arg.star == "**" or arg.value is first:
                found.append(self._of(arg.value, path, frame))
        return joined(found) if found else None

    def _of_container(
        self, call: cst.Call, method: cst.Attribute, path: Path, frame: Frame | None
    ) -> Value | None:
        """What a method of a list or dictionary returns; None for any other call."""
        name, receiver = method.attr.value, method.value
        if name in TAKES and not is_name(receiver, "self"):
            key = self.entries.literal(call.args[0].value) if call.args else None
            found = [self._of(receiver, (key, *path), frame)]
            if len(call.args) == 2 and not is_name(call.args[1].value, "None"):
                found.append(self._of(call.args[1].value, path, frame))
            return joined(found)
        if name in _MOVES and path and isinstance(path[0], str):
            return self._of(receiver, path, frame)
        if name in _GIVES_ALL and not call.args and path:
            if name == "copy":
                return self._of(receiver, path, frame)
            if name == "values":
                return self._of(receiver, (None, *path[1:]), frame)
            return self._of(receiver, (None, *path[2:]), frame) if path[1:2] == (1,) else None
        return None

    def _of_function(self, call: cst.Call, path: Path, frame: Frame | None) -> Value | None:
        """What a function or module of the project returns, or an object of it holds; None if it is not visible."""
        if (short := self._lambda(call)) is not None:
            inner = self.frame(call, short, frame)
            return self._of(short.body, path, inner) if inner is not None else None
        function = self._kinds.calls.callee(call)
        if function is None and path and (klass := self._classes.local(call.func)) is not None:
            return self._held(klass, call, path, frame)
        if function is None and path:
            return self.entered(call, path, frame)
        return self._returned(function, call, path, frame) if function is not None else None

    def entered(self, call: cst.Call, path: Path, frame: Frame | None) -> Value | None:
        """What the `forward` returns that a call of a module runs, or a part of it; None if the source does not show it.

        A value does not lead into a module by itself, as most questions end at its call.
        """
        functions = self._fitting(self._forwards(call.func, frame), call, path)
        found = [self._returned(function, call, path, frame) if function else None for function in functions]
        known = [value for value in found if value is not None]
        return joined(known) if known and len(known) == len(found) else None

    def _fitting(
        self, functions: list[cst.FunctionDef | None], call: cst.Call, path: Path
    ) -> list[cst.FunctionDef | None]:
        """Those of several functions that return as many values as a call is unpacked into, or all if none certainly does."""
        statement = self._tree.parent[call]
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if len(functions) < 2 or target is None or (path and not isinstance(target, cst.Tuple)):
            return functions
        count = _count(target)
        leaves = {one: self._tree.own(one, cst.Return) if one is not None else [] for one in functions}
        return [
            one for one in functions if any(_count(leave.value) == count for leave in leaves[one])
        ] or functions

    def _lambda(self, call: cst.Call) -> cst.Lambda | None:
        reaching_ = self._names.definition(call.func) if isinstance(call.func, cst.Name) else None
        value = reaching_.value if reaching_ is not None and reaching_.how == "assign" else None
        return value if isinstance(value, cst.Lambda) else None

    def frame(
        self, call: cst.Call, function: cst.FunctionDef | cst.Lambda, outer: Frame | None
    ) -> Frame | None:
        """The frame of a call; None if calls are nested too deeply, or call themselves."""
        key = (call, outer)
        if key not in self._frames:
            self._frames[key] = Frame(call, function, outer)
        above = outer
        while above is not None:
            if above.function is function:
                return None
            above = above.outer
        return self._frames[key] if self._frames[key].depth <= _CALLS_DEEP else None

    def _returned(
        self, function: cst.FunctionDef, call: cst.Call, path: Path, outer: Frame | None
    ) -> Value | None:
        inner = self.frame(call, function, outer)
        if inner is None or not self._keeps_result(function):
            return None
        return self.returned(function, path, inner)

    def returned(self, function: cst.FunctionDef, path: Path = (), frame: Frame | None = None) -> Value:
        """What a function returns, on all ways out of it."""
        return joined(self._of(value, path, frame) for value in self.results(function))

    def results(self, function: cst.FunctionDef) -> list[Node]:
        """The values behind `return` in a function."""
        leaves = self._tree.own(function, cst.Return)
        return [leave.value for leave in leaves if leave.value is not None]

    def _keeps_result(self, function: cst.FunctionDef) -> bool:
        """Whether a call of a function gives what its `return` says."""
        if function.asynchronous is not None or self._tree.own(function, cst.Yield):
            return False
        return all(
            _KEEPS_RESULT.fullmatch(
                self._names.qualified(
                    item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
                )
                or ""
            )
            for item in function.decorators
        )

    def _forwards(self, module: Node, frame: Frame | None) -> list[cst.FunctionDef | None]:
        """The `forward` methods that a call of a module may run, None for one that the source does not show."""
        if isinstance(module, cst.Attribute) and module.attr.value == "forward":
            module = module.value
        if is_name(module, "self"):
            klass = self._tree.enclosing(module, cst.ClassDef)
            return [self.forward(klass) if klass is not None and not self._is_overridden(klass) else None]
        return [self.forward_of(made) for made in self.makers(module, frame)]

    def makers(self, module: Node, frame: Frame | None = None) -> list[cst.Call]:
        """The calls that make the module which an expression may be; empty if one of them, or a part of it, is unknown."""
        value = self.of(module, (), frame)
        made = self._kinds.construction(module)
        found = [made] if made is not None else []
        if not found:
            makers = [self._kinds.construction(o.node) if not o.path else None for o in value.tensors]
            found = self._kinds.without_loads(makers)
        return found if not any(map(self.is_changed, (module, *value.aliases))) else []

    def forward_of(self, made: cst.Call) -> cst.FunctionDef | None:
        """The `forward` of the module that a call makes."""
        klass = self._classes.local(made.func)
        return self.forward(klass) if klass is not None else None

    def forward(self, klass: cst.ClassDef) -> cst.FunctionDef | None:
        """The `forward` of a class of modules that a call of an object runs."""
        if not self._classes.derives(klass, "torch.nn.Module") or self._classes.method(klass, "__call__"):
            return None
        return self._classes.method(klass, "forward")

    def _is_overridden(self, klass: cst.ClassDef) -> bool:
        """Whether a subclass in this file overrides `forward`."""
        return any(
            self._classes.inherits(other, klass) and "forward" in self._classes.methods(other)
            for other in self._classes.all()
        )

    def is_changed(self, module: Node) -> bool:
        """Whether a part of a module is replaced after construction: `model.softmax = nn.Identity()`."""
        return dotted(module) in self._changed

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The paths of all that has a part which is replaced."""
        paths = (path.split(".") for path in self._changed_paths())
        return frozenset(".".join(parts[:end]) for parts in paths for end in range(1, len(parts)))

    def _changed_paths(self) -> Iterator[str]:
        for call in self._tree.all(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHANGES:
                yield f"{_written_path(call.func.value)}."
        for item in self._tree.all(cst.AssignTarget, cst.Del):
            yield _written_path(item.target)

    # -- objects of the project -------------------------------------------------------------------------------

    def _held(self, klass: cst.ClassDef, call: cst.Call, path: Path, frame: Frame | None) -> Value | None:
        """What an object holds that a call makes: a field that it is given, or an attribute that its methods assign."""
        name, rest = path[0], path[1:]
        fields = self._fields(klass)
        if fields is not None:
            field = fields[name] if isinstance(name, int) and -len(fields) <= name < len(fields) else name
            if not isinstance(field, str) or field not in fields:
                return None
            given = self._given(call, field, fields.index(field))
            if given is not None:
                return self._of(given[0], (*given[1], *rest), frame)
            default = self._default(klass, field) if not spreads(call) else None
            return self._of(default, rest, None) if default is not None else None
        if not isinstance(name, str):
            return None
        init = self._classes.method(klass, "__init__")
        inner = self.frame(call, init, frame) if init is not None else None
        found = self._kept(klass, name, None, rest, inner)
        return found if found.origins else None

    def _fields(self, klass: cst.ClassDef) -> list[str] | None:
        """The fields of a dataclass or named tuple, in order; None for any other class."""
        decorators = (
            item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
            for item in klass.decorators
        )
        is_data = any(_DATACLASSES.fullmatch(self._names.qualified(node) or "") for node in decorators)
        is_tuple = "typing.NamedTuple" in self._classes.bases(klass)
        if not is_data and not is_tuple and not self._is_model_output(klass):
            return None
        if "__init__" in self._classes.methods(klass):
            return None
        annotated = self._tree.own(klass, cst.AnnAssign)
        return [field.target.value for field in annotated if isinstance(field.target, cst.Name)]

    def _default(self, klass: cst.ClassDef, field: str) -> Node | None:
        """The default of a field of a dataclass: a plain value, or what `field` gets as one or as a lambda that makes it."""
        values = [item.value for item in self._tree.own(klass, cst.AnnAssign) if is_name(item.target, field)]
        value = values[0] if len(values) == 1 else None
        if not isinstance(value, cst.Call):
            return value
        if not _FIELDS.fullmatch(self._names.qualified(value.func) or ""):
            return None
        maker = argument(value, "default_factory") or argument(value, "factory")
        return maker.body if isinstance(maker, cst.Lambda) else argument(value, "default")

    def _is_model_output(self, klass: cst.ClassDef) -> bool:
        return any(
            isinstance(base, str) and base.endswith(".ModelOutput") for base in self._classes.bases(klass)
        )

    # -- parameters -------------------------------------------------------------------------------------------

    def _parameter(self, param: cst.Param, path: Path, frame: Frame | None) -> Value:
        """What the call of a frame gives to a parameter; without a frame, what all known calls give it."""
        function = self._tree.parent.get(self._tree.parent.get(param, param))
        if not isinstance(function, FUNCTIONS):
            return _itself(param, path, frame)
        if frame is not None and frame.function is function:
            found = self._passed(param, function, frame.call, path, frame.outer)
            return found if found is not None else _itself(param, path, frame)
        if isinstance(function, cst.Lambda):
            given = self._kinds.calls.given(param) if not path else None
            return (
                joined(self._of(value, path, None) for value in given)
                if given
                else _itself(param, path, None)
            )
        sites = self._kinds.calls.sites(function)
        found_all = [self._passed(param, function, site, path, None) for site in sites[: _SITES + 1]]
        known = [value for value in found_all if value is not None]
        if not known or len(known) < len(found_all) or len(sites) > _SITES:
            return _itself(param, path, None)
        return joined(known)

    def _passed(
        self,
        param: cst.Param,
        function: cst.FunctionDef | cst.Lambda,
        call: cst.Call,
        path: Path,
        frame: Frame | None,
    ) -> Value | None:
        """What a call passes for a parameter; None if that is not certain."""
        params = function.params
        if param is params.star_arg:
            first = self._kinds.calls.first_rest(function)
            rest = [
                (arg.value, arg.star == "*") for arg in call.args if arg.keyword is None and arg.star != "**"
            ]
            starts = any(starred for _, starred in rest[:first])
            return self._placed(rest[first:], path, frame) if path and not starts else None
        if param is params.star_kwarg:
            if not path or any(arg.star == "**" for arg in call.args):
                return None
            named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
            values = list(named.values()) if path[0] is None else [named[path[0]]] if path[0] in named else []
            return joined(self._of(value, path[1:], frame) for value in values) if values else None
        place = self._kinds.calls.place(function, param)
        if place is None:
            return None
        given = self._given(call, param.name.value, place)
        if given is not None and param.default is not None and self._is_beyond(*given, frame):
            return self._of(param.default, path, None)
        if given is not None:
            return self._of(given[0], (*given[1], *path), frame)
        if param.default is not None and not any(arg.star for arg in call.args):
            return self._of(param.default, path, None)
        return None

    def _is_beyond(self, spread: Node, path: Path, frame: Frame | None) -> bool:
        """Whether a call spreads a tuple that has no element at a place."""
        place = path[0] if path else None
        made = [origin.node for origin in self._of(spread, (), frame).origins] if path else []
        return bool(made) and all(
            isinstance(node, cst.Tuple)
            and isinstance(place, int)
            and place >= len(node.elements)
            and not any(isinstance(element, cst.StarredElement) for element in node.elements)
            for node in made
        )

    def _given(self, call: cst.Call, keyword: str, place: int) -> tuple[Node, Path] | None:
        """The expression that a call gives by a keyword, or at a place, and the path in it: `args` and 1 for `*args`."""
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == keyword:
                return arg.value, ()
        for position, arg in enumerate(call.args):
            if arg.keyword is not None or arg.star == "**" or position > place >= 0 or place < 0:
                continue
            if arg.star:
                return arg.value, (place - position,)
            if position == place:
                return arg.value, ()
        spread = [arg.value for arg in call.args if arg.star == "**"]
        return (spread[0], (keyword,)) if len(spread) == 1 else None


# Methods that change the layers in a container.
_CHANGES = frozenset("add_module append extend insert pop register_module".split())


def _count(node: Node | None) -> int | None:
    """How many values a tuple has; None for what is no tuple."""
    return len(node.elements) if isinstance(node, cst.Tuple) else None


def _itself(node: Node, path: Path, frame: Frame | None) -> Value:
    return Value((Origin(node, path, frame),))


def _filled(value: Value, path: Path) -> Value:
    """A value without the empty containers among its origins."""
    return Value(tuple(o for o in value.origins if not _is_empty(o, path)), value.aliases)


def _is_empty(origin: Origin, path: Path) -> bool:
    """Whether an origin is an empty container, into which something is written later."""
    node = origin.node
    if isinstance(node, (cst.List, cst.Dict, cst.Tuple)):
        return not node.elements
    return isinstance(node, cst.Call) and origin.path == path and dotted(node.func) in _EMPTY


_EMPTY = frozenset(
    "dict list set deque collections.deque defaultdict collections.defaultdict OrderedDict collections.OrderedDict".split()
)


def _place_of(target: Node | None, variable: str) -> Path | None:
    """The path of a variable in the target of an assignment or loop: (1,) for `b` in `a, b`; None where it is starred."""
    if target is None or dotted(target) == variable:
        return () if target is not None else None
    if not isinstance(target, (cst.Tuple, cst.List)):
        return None
    elements = target.elements
    starred = [place for place, element in enumerate(elements) if isinstance(element, cst.StarredElement)]
    for place, element in enumerate(elements):
        if place in starred:
            continue
        inner = _place_of(element.value, variable)
        if inner is not None:
            behind = bool(starred) and place > starred[0]
            return (place - len(elements) if behind else place, *inner)
    return None


def _written_path(node: Node) -> str:
    """As `dotted`, with `model.net.[]` for `model.net[0]`; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        parts.append(node.attr.value if isinstance(node, cst.Attribute) else "[]")
        node = node.value
    return ".".join([node.value, *reversed(parts)]) if isinstance(node, cst.Name) else ""
