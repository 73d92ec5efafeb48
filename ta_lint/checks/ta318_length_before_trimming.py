"""TA318: a token limit counts a prompt that is truncated afterwards."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = ("max_*", ("len", "shape", "size"))

_ASKED_FOR = regex(r"max_(new_|gen_|output_|completion_)?(tokens|length|len)|max_gen_toks")
_BOUNDS = {"max_length", "max_len", "max_seq_len", "max_total_tokens"}


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Assign):
        target, total = statement.targets[0].target, statement.value
        if not isinstance(target, cst.Name) or not isinstance(total, cst.BinaryOperation):
            continue
        counted = _counted(module, total)
        if counted is None or len(module.names.bindings(target)) != 1:
            continue
        name, dimension = counted
        cut = _cut(module, statement, name, dimension)
        if cut is not None and any(
            _bounds(module, _left(module, use, cut)) for use in _uses(module, target, cut)
        ):
            message = f"`{target.value}` is computed before `{name.value}` is cut, and counts tokens that are gone: compute it after"
            yield Suspicion(statement, message, ((cut, f"`{name.value}` is cut here"),))


def _counted(module: FileFacts, total: cst.BinaryOperation) -> tuple[cst.Name, int] | None:
    """In `len(prompt) + max_new_tokens`, where that is a parameter: the prompt, and the dimension that is counted."""
    if not isinstance(total.operator, cst.Add):
        return None
    for length, asked in ((total.left, total.right), (total.right, total.left)):
        if not isinstance(asked, cst.Name) or not _ASKED_FOR.fullmatch(asked.value):
            continue
        binding = module.names.definition(asked)
        if binding is not None and binding.how == "param":
            return _measured(module, length)
    return None


def _measured(module: FileFacts, length: Node) -> tuple[cst.Name, int] | None:
    """The name and dimension whose length an expression is: `len(x)`, `x.shape[1]`, `x.size(-1)`."""
    owner: Node | None = None
    dimension: float | None = None
    if isinstance(length, cst.Call) and len(length.args) == 1:
        given = length.args[0].value
        if is_name(length.func, "len"):
            owner, dimension = given, 0
        elif isinstance(length.func, cst.Attribute) and length.func.attr.value == "size":
            owner, dimension = length.func.value, module.number(given)
    elif isinstance(length, cst.Subscript) and isinstance(length.value, cst.Attribute):
        index = length.slice[0].slice
        if length.value.attr.value == "shape" and len(length.slice) == 1 and isinstance(index, cst.Index):
            owner, dimension = length.value.value, module.number(index.value)
    return (owner, int(dimension)) if isinstance(owner, cst.Name) and dimension is not None else None


def _cut(module: FileFacts, statement: cst.Assign, name: cst.Name, dimension: int) -> cst.Assign | None:
    """The next assignment to a name after a statement, if it truncates the value: `prompt = prompt[-context:]`."""
    tree = module.tree
    later = [binding.node for binding in module.names.bindings(name) if tree.before(statement, binding.node)]
    cut = min(later, key=tree.order, default=None)
    cut = tree.statement(cut) if cut is not None else None
    if (
        not isinstance(cut, cst.Assign)
        or len(cut.targets) != 1
        or not is_name(cut.targets[0].target, name.value)
    ):
        return None
    value = cut.value
    if not isinstance(value, cst.Subscript) or not is_name(value.value, name.value):
        return None
    together = tree.home(cut) is tree.home(statement) and tree.loops(cut) == tree.loops(statement)
    return cut if together and not tree.apart(statement, cut) and _shortens(value, dimension) else None


def _shortens(value: cst.Subscript, dimension: int) -> bool:
    indices = [element.slice for element in value.slice]
    if dimension >= len(indices) or (dimension < 0 and len(indices) < 2) or dimension < -1:
        return False
    if dimension > 0 and any(
        isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis) for index in indices
    ):
        return False
    along = indices[dimension]
    return isinstance(along, cst.Slice) and (along.lower is not None or along.upper is not None)


def _uses(module: FileFacts, limit: cst.Name, cut: cst.Assign) -> list[cst.Name]:
    tree = module.tree
    return [
        mention
        for mention in module.names.mentions(limit)
        if tree.before(cut, mention) and not tree.contains(cut, mention) and not tree.apart(cut, mention)
    ]


def _left(module: FileFacts, use: cst.Name, cut: cst.Assign) -> Node:
    """In `limit - len(x)`, what that leaves where the length is that after the cut; else the limit itself."""
    rest = module.tree.parent[use]
    if not isinstance(rest, cst.BinaryOperation) or not isinstance(rest.operator, cst.Subtract):
        return use
    length = module.kinds.origin(rest.right)
    measured = _measured(module, length)
    is_cut = measured is not None and dotted(measured[0]) == dotted(cut.targets[0].target)
    return rest if is_cut and module.tree.before(cut, length) and rest.left is use else use


def _bounds(module: FileFacts, use: Node) -> bool:
    """Whether a number limits the output: compared with a length, as the end of a `range`, or as `max_length=`."""
    above = module.tree.parent[use]
    if isinstance(above, cst.ComparisonTarget):
        above = module.tree.parent[above]
    if isinstance(above, cst.Comparison) and len(above.comparisons) == 1:
        sides = (above.left, above.comparisons[0].comparator)
        return any(_measured(module, side) is not None for side in sides if side is not use)
    if not isinstance(above, cst.Arg):
        return False
    call = module.tree.parent[above]
    is_range = isinstance(call, cst.Call) and called_name(call) == "range"
    return is_range or (above.keyword is not None and above.keyword.value in _BOUNDS)
