"""Shapes of tensors that the source shows: `torch.randn(8, 4)`, `labels.view(-1)`; None if unknown."""

from itertools import zip_longest

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.layer_shapes import Shape, flattened, joined, product, reduced, through
from ta_lint.facts.values.loaders import Loaders
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame, Origin, Value
from ta_lint.syntax.tree import Node, argument, evaluated, is_name, spreads

_BY_SIZES = regex(r"torch\.(rand|randn|zeros|ones|empty)")
_BY_SIZE = {"torch.full": 0, "torch.randint": 2}
_LIKE = regex(r"torch\.(rand|randn|zeros|ones|empty|full|randint)_like")
_OF_LITERAL = frozenset({"torch.tensor", "torch.as_tensor"})
_LINES = frozenset({"torch.arange", "torch.linspace", "torch.randperm"})

# Datasets whose samples are an image and its class index.
_CLASSES = regex(
    r"torchvision\.datasets\.(CIFAR10|CIFAR100|FashionMNIST|ImageFolder|KMNIST|MNIST|STL10|SVHN)"
)

# Methods that keep the shape.
ELEMENTWISE = frozenset(
    "abs bfloat16 bool clamp clone contiguous cos cpu cuda detach double exp float half int log long pow relu "
    "requires_grad_ sigmoid sin sqrt square tanh to type".split()
)
# Functions that reduce to a single number unless an argument says otherwise.
_LOSSES = regex(r"torch\.nn\.functional\.(\w+_loss|\w*cross_entropy\w*|kl_div)")
_CRITERIA = regex(r"torch\.nn\.\w+Loss")
_REDUCTIONS = frozenset({"torch.mean", "torch.sum"})
_REDUCES = frozenset({"mean", "sum"})
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
_FUNCTIONS = regex(r"torch\.(abs|clamp|cos|exp|log|relu|sigmoid|sin|sqrt|square|tanh)")


class Shapes:
    """The shapes of expressions."""

    def __init__(self, names: Names, kinds: Kinds, loaders: Loaders, flow: ValueFlow) -> None:
        self._names = names
        self._kinds = kinds
        self._loaders = loaders
        self._flow = flow
        self._shapes: dict[Origin, Shape | None] = {}
        self._asked: set[Origin] = set()
        self._depends = False  # whether an answer left out what is being asked

    def shape(self, node: Node, frame: Frame | None = None) -> Shape | None:
        """The shape of the tensor that an expression certainly is, on all ways that lead to it.

        A number that it begins as is left aside, and so is what comes round a loop from this very value.
        """
        return self._of_value(self._flow.of(node, (), frame))

    def _of_value(self, value: Value) -> Shape | None:
        made = [origin for origin in value.tensors if not _is_number(origin.node)]
        found = {self._of_origin(origin, value) for origin in made if origin not in self._asked}
        self._depends = self._depends or any(origin in self._asked for origin in made)
        return found.pop() if len(found) == 1 else None

    def _of_origin(self, origin: Origin, value: Value) -> Shape | None:
        if isinstance(origin.node, (cst.For, cst.CompFor)):
            names = [alias for alias in value.aliases if isinstance(alias, cst.Name)]
            batches = (self._of_batch(name, origin.node) for name in names)
            return next((shape for shape in batches if shape is not None), None)
        if origin in self._shapes:
            return self._shapes[origin]
        self._asked.add(origin)  # recursion ends here
        whole = self._infer(origin.node, origin.frame) if all(map(_is_place, origin.path)) else None
        self._asked.discard(origin)
        depth = len(origin.path)
        shape = whole[depth:] if whole is not None and len(whole) >= depth else None
        self._depends = self._depends and bool(self._asked)
        if not self._depends:
            self._shapes[origin] = shape
        return shape

    def _infer(self, node: Node, frame: Frame | None) -> Shape | None:
        if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
            left, right = self._operand(node.left, frame), self._operand(node.right, frame)
            return _broadcast(left, right) if left is not None and right is not None else None
        if isinstance(node, cst.UnaryOperation):
            return self.shape(node.expression, frame)
        if isinstance(node, cst.AugAssign):
            # what changes in place keeps its shape; a number does not change in place
            counts = self._counts(node.target, frame)
            return self.shape(node.value if counts else node.target, frame)
        if isinstance(node, cst.Attribute):
            return self.shape(node.value, frame) if node.attr.value == "data" else None
        if not isinstance(node, cst.Call):
            return None
        called = self._names.qualified(node.func)
        if called is not None:
            return self._made(called, node, frame)
        if self._kinds.kind(node.func) is Kind.CRITERION:
            made = self._kinds.construction(node.func)
            maker = self._names.qualified(made.func) if made is not None else None
            reduces = (
                made is not None and maker is not None and _CRITERIA.fullmatch(maker) and _reduces(made, 1)
            )
            return () if reduces else None
        if isinstance(node.func, cst.Attribute):
            found = self._by_method(node, node.func.value, frame)
            return found if found is not None else self._by_module(node, frame)
        return self._by_module(node, frame)

    # -- modules ----------------------------------------------------------------------------------------------

    def _by_module(self, call: cst.Call, frame: Frame | None) -> Shape | None:
        """The shape of what a layer, a sequence of layers or a module of the project returns."""
        makers = self._flow.makers(call.func, frame)
        found = {self._through(made, call, frame) for made in makers}
        return found.pop() if len(found) == 1 else None

    def _through(self, made: cst.Call, call: cst.Call, frame: Frame | None) -> Shape | None:
        if self._names.qualified(made.func) is None:
            entered = self._flow.entered(call, (), frame)
            return self._of_value(entered) if entered is not None else None
        if len(call.args) != 1 or call.args[0].star:
            return None
        before = self.shape(call.args[0].value, frame)
        return self._through_layer(made, before) if before is not None else None

    def _through_layer(self, made: cst.Call, before: Shape) -> Shape | None:
        layer = self._names.qualified(made.func)
        if layer != "torch.nn.Sequential":
            return through(layer, made, before, self._size) if layer is not None else None
        after: Shape | None = before
        for arg in made.args:
            inner = self._kinds.construction(arg.value) if not arg.star and arg.keyword is None else None
            after = self._through_layer(inner, after) if inner is not None and after is not None else None
        return after if made.args else None

    def _of_batch(self, name: cst.Name, loop: Node) -> Shape | None:
        """The shape of an unpacked part of a batch whose samples come from known tensors."""
        found = self._loaders.pass_of(name)
        part = found.part(name) if found is not None else None
        if found is None or part is None or found.loop is not loop or len(found.loaders) != 1:
            return None
        loader = found.loaders[0]
        made = self._loaders.dataset(loader)
        if not isinstance(made, cst.Call) or loader.spreads or loader.given("collate_fn") is not None:
            return None
        size = loader.given("batch_size")
        if size is not None and not self._is_count(size):
            return None  # `batch_size=None` turns batching off
        called = self._names.qualified(made.func) or ""
        if _CLASSES.fullmatch(called) and part == 1 and not any(map(_changes, made.args)):
            return (None,)
        if called != "torch.utils.data.TensorDataset" or part >= len(made.args) or made.args[part].star:
            return None
        whole = self.shape(made.args[part].value)
        return (None, *whole[1:]) if whole else None

    def _operand(self, node: Node, frame: Frame | None) -> Shape | None:
        return () if self._counts(node, frame) else self.shape(node, frame)

    def _counts(self, node: Node, frame: Frame | None) -> bool:
        """Whether an operand is a number of Python, but for what comes round a loop."""
        if isinstance(node, cst.Call):
            return self._names.qualified(node.func) == "builtins.len"
        if _is_number(node):
            return True
        origins = (
            self._flow.of(node, (), frame).tensors if isinstance(node, (cst.Name, cst.Attribute)) else ()
        )
        numbers = [origin for origin in origins if _is_number(origin.node)]
        return bool(numbers) and all(origin in numbers or origin in self._asked for origin in origins)

    def _made(self, called: str, call: cst.Call, frame: Frame | None) -> Shape | None:
        if _BY_SIZES.fullmatch(called):
            size = argument(call, "size")
            given = [size] if size is not None else [a.value for a in call.args if a.keyword is None]
            return self._sizes(given) if not any(arg.star for arg in call.args) else None
        if called in _BY_SIZE:
            size = argument(call, "size", _BY_SIZE[called])
            if size is None and called == "torch.randint":
                size = argument(call, "size", 1)
            return self._sizes([size]) if isinstance(size, (cst.Tuple, cst.List)) else None
        if _LIKE.fullmatch(called) or _FUNCTIONS.fullmatch(called):
            return self.shape(call.args[0].value, frame) if call.args and not call.args[0].star else None
        if called in _JOINS:
            return self._joined(call, frame)
        if _LOSSES.fullmatch(called) or called in _REDUCTIONS:
            whole = _reduces(call, 4 if called not in _REDUCTIONS else 1)
            return () if whole else self._reduced(call, 1, argument(call, "input", 0), frame)
        if called in _LINES:
            return (self._size(call.args[0].value) if len(call.args) == 1 else None,)
        if called in _OF_LITERAL and call.args:
            return _of_literal(self._kinds.origin(call.args[0].value))
        return None

    def _sizes(self, given: list[cst.BaseExpression]) -> Shape | None:
        if len(given) == 1 and isinstance(origin := self._kinds.origin(given[0]), (cst.Tuple, cst.List)):
            given = [element.value for element in origin.elements if isinstance(element, cst.Element)]
            return tuple(self._size(size) for size in given) if len(given) == len(origin.elements) else None
        # a single argument that is not a number may be a tuple of sizes
        if len(given) == 1 and not self._is_count(given[0]):
            return None
        return tuple(self._size(size) for size in given)

    def _size(self, node: Node) -> int | None:
        literal = self._kinds.origin(node)
        return evaluated(literal) if isinstance(literal, cst.Integer) else None

    def _is_count(self, node: Node) -> bool:
        """Whether a value certainly is one whole number: also a parameter that says so, `n: int` and `n=256`."""
        origin = self._kinds.origin(node)
        if isinstance(origin, cst.Param):
            is_int = origin.annotation is not None and is_name(origin.annotation.annotation, "int")
            return is_int or isinstance(origin.default, cst.Integer)
        counts = isinstance(origin, cst.Call) and self._names.qualified(origin.func) == "builtins.len"
        return counts or isinstance(origin, cst.Integer)

    def _by_method(self, call: cst.Call, receiver: Node, frame: Frame | None) -> Shape | None:
        name = called_name(call) or ""
        sizes = [_whole(arg.value) for arg in call.args]
        if (name in ("view", "reshape") and sizes == [-1]) or (name in ("flatten", "ravel") and not sizes):
            return (self._count(receiver, frame),)
        if name in ("mean", "sum") and not call.args and self._kinds.kind(receiver) is Kind.TENSOR:
            return ()
        if name in ("view", "reshape") and len(call.args) > 1 and not spreads(call):
            return tuple(self._size(arg.value) for arg in call.args)
        if name in _REDUCES:
            return self._reduced(call, 0, receiver, frame)
        before = self.shape(receiver, frame)
        if before is None:
            return None
        if name in ELEMENTWISE:
            return before
        if name == "flatten":
            first, last = argument(call, "start_dim", 0), argument(call, "end_dim", 1)
            ends = (_whole(first) if first else 0, _whole(last) if last else -1)
            return (
                flattened(before, ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None
            )
        return _squeezed(name, sizes, before)

    def _reduced(self, call: cst.Call, place: int, tensor: Node | None, frame: Frame | None) -> Shape | None:
        """The shape of a sum or mean over dimensions that the source names: `x.sum(1, keepdim=True)`."""
        dim, kept = argument(call, "dim", place), argument(call, "keepdim", place + 1)
        if dim is None or tensor is None or spreads(call):
            return None
        given = [element.value for element in dim.elements] if isinstance(dim, cst.Tuple) else [dim]
        dims = [_whole(one) for one in given]
        keeps = self._kinds.boolean(kept) if kept is not None else False
        before = self.shape(tensor, frame)
        if before is None or keeps is None or None in dims:
            return None
        return reduced(before, tuple(one for one in dims if one is not None), keeps)

    def _joined(self, call: cst.Call, frame: Frame | None) -> Shape | None:
        """The shape of `torch.cat([a, b], dim=1)`."""
        tensors = self._kinds.origin(call.args[0].value) if call.args else None
        if not isinstance(tensors, (cst.List, cst.Tuple)) or spreads(call):
            return None
        shapes = [self.shape(element.value, frame) for element in tensors.elements]
        known = next((shape for shape in shapes if shape is not None), None)
        dim = argument(call, "dim", 1)
        return joined(known, _whole(dim) if dim is not None else 0) if known is not None else None

    def _count(self, node: Node, frame: Frame | None) -> int | None:
        """The number of elements of a tensor."""
        shape = self.shape(node, frame)
        return product(shape) if shape else None


def _squeezed(name: str, sizes: list[int | None], before: Shape) -> Shape | None:
    """The shape after `unsqueeze` or `squeeze` of one dimension."""
    place = sizes[0] if len(sizes) == 1 else None
    if place is None or name not in ("squeeze", "unsqueeze"):
        return None
    if name == "unsqueeze":
        place = place if place >= 0 else place + len(before) + 1
        return (*before[:place], 1, *before[place:])
    if not -len(before) <= place < len(before) or before[place] != 1:
        return None
    place %= len(before)
    return (*before[:place], *before[place + 1 :])


def _is_place(key: object) -> bool:
    """Whether a key takes one element of the first dimension."""
    return isinstance(key, int)


def _reduces(call: cst.Call, by_position: int) -> bool:
    """Whether a loss certainly returns a single number: by default, or by an explicit reduction."""
    told = argument(call, "reduction")
    plain = told is None or (isinstance(told, cst.SimpleString) and evaluated(told) in ("mean", "sum"))
    others = any(
        arg.keyword is not None and arg.keyword.value in ("dim", "axis", "reduce") for arg in call.args
    )
    given = sum(arg.keyword is None for arg in call.args)
    return plain and not others and not spreads(call) and given <= by_position


def _changes(arg: cst.Arg) -> bool:
    """Whether an argument may make a dataset's targets something other than numbers."""
    return arg.keyword is not None and arg.keyword.value in ("target_transform", "transforms")


def _broadcast(left: Shape, right: Shape) -> Shape | None:
    """The shape of an elementwise operation on both."""
    found: list[int | None] = []
    for one, other in zip_longest(reversed(left), reversed(right), fillvalue=1):
        if one == 1 or one == other:
            found.append(other)
        elif other == 1:
            found.append(one)
        else:
            found.append(one if other is None else other)
    return tuple(reversed(found))


def _of_literal(node: Node) -> Shape | None:
    """The shape of a tensor built from a literal list of numbers, nested or not."""
    if _is_number(node):
        return ()
    if not isinstance(node, (cst.List, cst.Tuple)) or not node.elements:
        return None
    if any(isinstance(element, cst.StarredElement) for element in node.elements):
        return None
    first = _of_literal(node.elements[0].value)
    return (len(node.elements), *first) if first is not None else None


def _is_number(node: Node) -> bool:
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    return isinstance(node, (cst.Integer, cst.Float))


def _whole(node: Node) -> int | None:
    """An integer literal, signed or not."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _whole(node.expression)
        return -inner if inner is not None else None
    return evaluated(node) if isinstance(node, cst.Integer) else None
