"""TA420: `x.view(b, h, w, c)` of an `x` with shape `b, c, h, w`: the sizes change places, the values do not."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.names import Binding
from ta_lint.syntax.edits import Edit, ProposedFix, replace
from ta_lint.syntax.tree import FUNCTIONS, Node, argument

KEYWORDS = (("view", "reshape"), ("shape", "size"))

_CUTS = frozenset({"chunk", "split", "tensor_split"})


@dataclass(frozen=True, eq=False)
class Sizes:
    """`b, c, h, w = x.shape`: the names of the dimensions of `tensor`."""

    statement: cst.Assign
    tensor: cst.Name
    names: tuple[str, ...]


def check(module: FileFacts) -> Iterator[Suspicion]:
    unpacked = [sizes for assign in module.tree.all(cst.Assign) if (sizes := _sizes(assign)) is not None]
    for call in module.tree.all(cst.Call) if unpacked else []:
        receiver = _reshaped(call)
        if receiver is None:
            continue
        sizes = next((found for found in unpacked if _is_same(found.tensor, receiver, module)), None)
        groups = _groups(call, sizes, module) if sizes is not None else None
        if sizes is None or groups is None or _keeps_order(groups, sizes.names):
            continue
        was = ", ".join(sizes.names)
        message = f"`{module.code(call)}` of `[{was}]` mixes the dimensions, as values keep their order: use `permute`"
        yield Suspicion(
            call,
            message,
            related=((sizes.statement, "the sizes are read here"),),
            fix=_fix(call, receiver, groups, sizes, module),
        )
    for call in module.tree.all(cst.Call) if unpacked else []:
        split = _split_too_early(call, unpacked, module)
        if split is not None:
            sizes, names = split
            was = ", ".join([*names, *["..."] * (len(names) < len(sizes.names))])
            message = f"`{module.code(call)}` of `[{was}]` mixes the dimensions: split the last one, then `transpose`"
            yield Suspicion(call, message, ((sizes.statement, "the sizes are read here"),))


def _split_too_early(
    call: cst.Call, unpacked: list[Sizes], module: FileFacts
) -> tuple[Sizes, tuple[str, ...]] | None:
    """The sizes of a tensor, and those that it still has, before one of which a reshape puts a new dimension.

    `x.view(b, heads, t, d)` of a tensor with shape `b, t, c` cuts time into heads, and not the channels.
    """
    receiver = _receiver(call)
    if receiver is None:
        return None
    for sizes in unpacked:
        # asked first: it is fast, and holds for all names if it does for some of them
        if _puts_before_a_size(call, sizes.names, sizes, module):
            names = _still_has(receiver, sizes, module)
            if names and _puts_before_a_size(call, names, sizes, module):
                return sizes, names
    return None


def _still_has(receiver: Node, sizes: Sizes, module: FileFacts) -> tuple[str, ...]:
    """The first dimensions of the unpacked tensor that another has: all of itself, all but the last of a projection of it."""
    if isinstance(receiver, cst.Name) and _is_same(sizes.tensor, receiver, module):
        return sizes.names
    origins = module.flow.of(receiver).origins
    made = origins[0].node if len(origins) == 1 else None
    if not isinstance(made, cst.Call):
        return ()
    if called_name(made) in _CUTS and isinstance(made.func, cst.Attribute):
        dim = argument(made, "dim", 1)
        is_last = dim is not None and module.number(dim) in (-1, len(sizes.names) - 1)
        return _still_has(made.func.value, sizes, module) if is_last else ()
    layer = module.kinds.construction(made.func)
    given = made.args[0].value if len(made.args) == 1 else None
    is_linear = layer is not None and module.qualified(layer.func) == "torch.nn.Linear"
    is_of_it = isinstance(given, cst.Name) and _is_same(sizes.tensor, given, module)
    return sizes.names[:-1] if is_linear and is_of_it else ()


def _puts_before_a_size(call: cst.Call, names: tuple[str, ...], sizes: Sizes, module: FileFacts) -> bool:
    """Whether a reshape keeps the first sizes in order, but with another dimension between or before them."""
    kept, is_new = 0, False
    for arg in call.args:
        product = _product(arg.value, sizes, module)
        if product == [names[kept]]:
            if is_new:
                return True
            kept += 1
            if kept == len(names):
                return False
        elif product or not _is_number_above_one(arg.value, module):
            return False
        else:
            is_new = True
    return False


def _is_number_above_one(node: Node, module: FileFacts) -> bool:
    """Whether an argument is a number of entries other than 1, as far as the source shows."""
    return isinstance(node, (cst.Name, cst.Attribute, cst.Integer)) and module.number(node) != 1


def _sizes(assign: cst.Assign) -> Sizes | None:
    target, value = assign.targets[0].target, assign.value
    if len(assign.targets) != 1 or not isinstance(target, (cst.Tuple, cst.List)):
        return None
    if isinstance(value, cst.Call) and not value.args and isinstance(value.func, cst.Attribute):
        shape = value.func if value.func.attr.value == "size" else None
    else:
        shape = value if isinstance(value, cst.Attribute) and value.attr.value == "shape" else None
    parts = [element.value for element in target.elements if isinstance(element, cst.Element)]
    names = tuple(part.value for part in parts if isinstance(part, cst.Name))
    if shape is None or not isinstance(shape.value, cst.Name) or len(names) != len(target.elements):
        return None
    repeated = any(count > 1 for name, count in Counter(names).items() if set(name) != {"_"})
    return Sizes(assign, shape.value, names) if len(names) > 1 and not repeated else None


def _reshaped(call: cst.Call) -> cst.Name | None:
    """`x` for `x.view(...)` and `x.contiguous().reshape(...)`."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("view", "reshape"):
        return None
    receiver = call.func.value
    while isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Attribute):
        if receiver.args or receiver.func.attr.value not in ("clone", "contiguous", "detach"):
            return None
        receiver = receiver.func.value
    return receiver if isinstance(receiver, cst.Name) else None


def _is_same(tensor: cst.Name, receiver: cst.Name, module: FileFacts) -> bool:
    """Whether both are the same variable with the same binding in one function."""
    if tensor.value != receiver.value or module.tree.home(tensor) is not module.tree.home(receiver):
        return False
    if not module.tree.before(tensor, receiver):
        return False
    bound = module.names.definition(receiver)
    return bound is not None and bound is module.names.definition(tensor)


def _groups(call: cst.Call, sizes: Sizes, module: FileFacts) -> list[list[str]] | None:
    """The dimensions in each argument; None if an argument is not made of these sizes.

    `h * w` combines two of them; `-1` stands for all that no other argument names.
    """
    args = [arg.value for arg in call.args]
    if len(args) == 1 and isinstance(args[0], (cst.Tuple, cst.List)):
        args = [element.value for element in args[0].elements if isinstance(element, cst.Element)]
    found: list[list[str] | None] = []
    for arg in args:
        group = None if _is_rest(arg) else _product(arg, sizes, module)
        if group == []:
            return None
        found.append(group)
    named = [name for group in found if group is not None for name in group]
    rest = [name for name in sizes.names if name not in named]
    if len(set(named)) != len(named) or found.count(None) > 1 or (rest and None not in found):
        return None
    if _may_be_one(named, module, call):
        return None
    groups = [rest if group is None else group for group in found]
    return [group for group in groups if group] if named else None


def _is_rest(node: Node) -> bool:
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)


def _product(node: Node, sizes: Sizes, module: FileFacts) -> list[str]:
    """The sizes whose product an argument is; empty for anything else."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        left, right = _product(node.left, sizes, module), _product(node.right, sizes, module)
        return left + right if left and right else []
    if not isinstance(node, cst.Name) or node.value not in sizes.names or set(node.value) == {"_"}:
        return []
    bound: Binding | None = module.names.definition(node)
    return [node.value] if bound is not None and bound.node is sizes.statement else []


def _may_be_one(named: list[str], module: FileFacts, call: cst.Call) -> bool:
    """Whether the function compares one of the sizes with 1: a dimension of size 1 may move freely."""
    function = module.tree.enclosing(call, *FUNCTIONS) or module.tree.root
    return any(
        isinstance(comparison.left, cst.Name)
        and comparison.left.value in named
        and any(module.number(target.comparator) == 1 for target in comparison.comparisons)
        for comparison in module.tree.within(function, cst.Comparison)
    )


def _keeps_order(groups: list[list[str]], names: tuple[str, ...]) -> bool:
    """Whether the groups keep the order of the dimensions; within a product the order is free."""
    start = 0
    for group in groups:
        if Counter(names[start : start + len(group)]) != Counter(group):
            return False
        start += len(group)
    return True


def _fix(
    call: cst.Call, receiver: cst.Name, groups: list[list[str]], sizes: Sizes, module: FileFacts
) -> ProposedFix | None:
    """`x.permute(0, 2, 3, 1)`, followed by a `reshape` if dimensions are merged."""
    names = sizes.names
    order = [names.index(name) for group in groups for name in group]
    if len(set(order)) != len(names):
        return None  # `_` names several dimensions
    permuted = f"{receiver.value}.permute({', '.join(map(str, order))})"
    if all(len(group) == 1 for group in groups):
        code = f"{permuted}.contiguous()"
    else:
        code = f"{permuted}.reshape({', '.join(module.verbatim(arg.value) for arg in call.args)})"
    back = _restored(call, groups, sizes, module)
    return ProposedFix("move the dimensions", (replace(call, code), *back)) if back is not None else None


def _restored(
    call: cst.Call, groups: list[list[str]], sizes: Sizes, module: FileFacts
) -> tuple[Edit, ...] | None:
    """The edits that also permute the dimensions back where the function reshapes the result to the original sizes.

    Both reshapes scramble the values, so fixing only one does not help: None if the way back is not as plain as
    `out.reshape(b, c, h, w)`.
    """
    ways = list(_ways_back(call, sizes, module))
    if not ways:
        return ()
    way = ways[0]
    given = [arg.value.value for arg in way.args if isinstance(arg.value, cst.Name)]
    placed = sorted(range(len(groups)), key=lambda index: sizes.names.index(groups[index][0]))
    in_order = [name for index in placed for name in groups[index]]
    if len(ways) > 1 or not list(sizes.names) == given == in_order or not isinstance(way.func, cst.Attribute):
        return None
    moved = f"{module.verbatim(way.func.value)}.permute({', '.join(map(str, placed))}).reshape"
    return (replace(way.func, moved),)


def _ways_back(call: cst.Call, sizes: Sizes, module: FileFacts) -> Iterator[cst.Call]:
    """Later reshapes, in the same function, of the call's result to the sizes in their original order."""
    tree = module.tree
    home = tree.home(call)
    made: set[str] = set()

    def comes_of_it(node: Node) -> bool:
        return tree.contains(node, call) or any(name.value in made for name in tree.within(node, cst.Name))

    for found in tree.own(home, cst.Assign, cst.Call):
        if isinstance(found, cst.Assign):
            if comes_of_it(found.value):
                made |= {name.value for target in found.targets for name in tree.within(target, cst.Name)}
            continue
        receiver = _receiver(found)
        if receiver is None or found is call or not comes_of_it(receiver):
            continue
        groups = _groups(found, sizes, module)
        if groups is not None and _keeps_order(groups, sizes.names):
            yield found


def _receiver(call: cst.Call) -> cst.BaseExpression | None:
    """The tensor in a `view` or `reshape` call."""
    is_reshape = isinstance(call.func, cst.Attribute) and call.func.attr.value in ("view", "reshape")
    return call.func.value if is_reshape and isinstance(call.func, cst.Attribute) else None
