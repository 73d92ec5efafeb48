"""Layers that have state: parameters, buffers, or a mode that `eval()` changes."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, argument, dotted, is_name

_STATEFUL = regex(
    r"torch\.nn\.(Lazy)?(Linear|Bilinear|Conv(Transpose)?[123]d|BatchNorm[123]d|SyncBatchNorm|LayerNorm|GroupNorm|"
    r"RMSNorm|Embedding(Bag)?|(RNN|LSTM|GRU)(Cell)?|MultiheadAttention|Transformer\w*|PReLU|RReLU|"
    r"(Alpha|FeatureAlpha)?Dropout[123]?d?|AdaptiveLogSoftmaxWithLoss|Parameter(List|Dict)?|Buffer|"
    r"UninitializedParameter)"
)
_INSTANCE_NORM = regex(r"torch\.nn\.(Lazy)?InstanceNorm[123]d")
_CONTAINER = regex(r"torch\.nn\.(Sequential|ModuleList|ModuleDict)")
# Norms that can be built without weights: the argument that says so, and its position.
_AFFINE = {
    "torch.nn.GroupNorm": ("affine", 3),
    "torch.nn.LayerNorm": ("elementwise_affine", 2),
    "torch.nn.RMSNorm": ("elementwise_affine", 2),
}
_BUILT = {
    "builtins.list": "list",
    "builtins.tuple": "tuple",
    "builtins.dict": "dict",
    "collections.OrderedDict": "dict",
    "collections.defaultdict": "dict",
}

_COPY = frozenset({"copy.copy", "copy.deepcopy"})

_DEPTH = 5


class Layers:
    """The layers that calls create and that plain containers hold."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._made: dict[Node, str | None] = {}

    def made(self, node: Node) -> str | None:
        """The name of the new stateful layer or parameter that an expression creates (`nn.Linear`).

        None for a stateless layer, for an existing one referred to by name, and where it is uncertain.
        """
        if node not in self._made:
            self._made[node] = None  # recursion ends here
            self._made[node] = self._make(node) if isinstance(node, cst.Call) else None
        return self._made[node]

    def _make(self, call: cst.Call) -> str | None:
        called = self._names.qualified(call.func)
        if called in _COPY and call.args:
            original = self._kinds.construction(call.args[0].value)
            return self.made(original) if original is not None else None
        if (inner := self._kinds.handed_on(call)) is not None:
            return self.made(inner)
        if called is not None:
            return self._known(called, call)
        if self._classes.is_of_project(call.func):
            is_module = self._classes.is_subclass(call.func, "torch.nn.Module")
            klass = self._classes.local(call.func) if is_module else None
            return klass.name.value if klass is not None and self.has_state(klass) else None
        return self._by_function(call)

    def _known(self, called: str, call: cst.Call) -> str | None:
        name = called.replace("torch.nn.", "nn.")
        if called in _AFFINE and is_name(argument(call, *_AFFINE[called]), "False"):
            return None
        if _STATEFUL.fullmatch(called):
            return name
        if _INSTANCE_NORM.fullmatch(called):
            flags = (argument(call, "affine", 3), argument(call, "track_running_stats", 4))
            on = [flag for flag in flags if is_name(flag, "True")]
            return name if on else None
        if _CONTAINER.fullmatch(called):
            held = (element for arg in call.args for element in self.elements(arg.value))
            return name if any(self.made(element) for element in held) else None
        foreign = not called.startswith("torch.nn.") and self._kinds.kind(call) is Kind.MODULE
        return name if foreign else None

    def has_state(self, klass: cst.ClassDef) -> bool:
        """Whether a class is a module that creates stateful layers or parameters, or inherits from one."""
        pending, seen = [klass], {klass}
        while pending:
            current = pending.pop()
            if not self._classes.derives(current, "torch.nn.Module"):
                continue
            bases = self._classes.bases(current)
            if any(isinstance(base, str) and _STATEFUL.fullmatch(base) for base in bases):
                return True
            if self._makes_state(current):
                return True
            new = [base for base in bases if isinstance(base, cst.ClassDef) and base not in seen]
            pending += new
            seen.update(new)
        return False

    def _makes_state(self, klass: cst.ClassDef) -> bool:
        return any(
            self.made(call) is not None or _registers(call)
            for call in self._tree.within(klass, cst.Call)
            if self._tree.enclosing(call, cst.ClassDef) is klass
        )

    def _by_function(self, call: cst.Call) -> str | None:
        """The name of the stateful layer that every `return` of the called function creates."""
        function = self._kinds.calls.function(call.func)
        if function is None or any(
            dotted(decorator.decorator) not in ("classmethod", "staticmethod")
            for decorator in function.decorators
        ):
            return None  # a decorator may keep what was made at the first call
        made = [self._made_in(function, leave.value) for leave in self._tree.own(function, cst.Return)]
        return made[0] if made and None not in made else None

    def _made_in(self, function: cst.FunctionDef, value: Node | None) -> str | None:
        """What a function creates and returns; None for a layer that was made elsewhere, such as `self.embedding`."""
        made = self._kinds.origin(value) if value is not None else None
        return self.made(made) if made is not None and self._tree.home(made) is function else None

    # -- containers -------------------------------------------------------------------------------------------

    def container(self, node: Node) -> str | None:
        """`list`, `tuple` or `dict` for an expression that certainly creates such a container."""
        if isinstance(node, cst.Name):
            node = self._kinds.origin(node)
        if isinstance(node, (cst.List, cst.ListComp)):
            return "list"
        if isinstance(node, cst.Tuple):
            return "tuple"
        if isinstance(node, (cst.Dict, cst.DictComp)):
            return "dict"
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Multiply)):
            return self.container(node.left) or self.container(node.right)
        if isinstance(node, cst.Call):
            return _BUILT.get(self._names.qualified(node.func) or "")
        return None

    def elements(self, node: Node, depth: int = _DEPTH) -> Iterator[Node]:
        """The elements of a container, including those of nested containers.

        For a local name, also the elements that its function adds. An expression that is no container yields itself.
        """
        parts = list(self._parts(node)) if depth else None
        if parts is None or parts == [node]:
            yield node
            return
        for part in parts:
            yield from self.elements(part, depth - 1)

    def _parts(self, node: Node) -> Iterator[Node]:
        if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
            yield from (element.value for element in node.elements if isinstance(element, cst.Element))
        elif isinstance(node, cst.Dict):
            yield from (item.value for item in node.elements if isinstance(item, cst.DictElement))
        elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            yield node.elt
        elif isinstance(node, cst.DictComp):
            yield node.value
        elif isinstance(node, cst.BinaryOperation):
            yield from (node.left, node.right)
        elif isinstance(node, cst.Call) and self.container(node) is not None:
            yield from (arg.value for arg in node.args)
        elif isinstance(node, cst.Name) and self.container(node) is not None:
            yield self._kinds.origin(node)
            function = self._tree.enclosing(node, *FUNCTIONS) or self._tree.root
            for call in self._tree.within(function, cst.Call):
                if isinstance(call.func, cst.Attribute) and dotted(call.func.value) == node.value:
                    yield from added(call)
        else:
            yield node


def added(call: cst.Call) -> list[Node]:
    """The elements that `append`, `extend`, `insert` or `update` adds to a container."""
    adds = isinstance(call.func, cst.Attribute) and call.func.attr.value in (
        "append",
        "extend",
        "insert",
        "update",
    )
    return [arg.value for arg in call.args] if adds else []


def _registers(call: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else None
    return name in ("register_buffer", "register_parameter", "add_module", "register_module")
