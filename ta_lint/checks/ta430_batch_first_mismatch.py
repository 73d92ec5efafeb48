"""TA430: a sequence layer without `batch_first=True` is used as if the batch came first."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, add_argument, replace
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (
    ("LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer"),
)

# The position of `batch_first` among the arguments.
_POSITIONS = {
    "torch.nn.LSTM": 4,
    "torch.nn.GRU": 4,
    "torch.nn.RNN": 5,  # after `nonlinearity`
    "torch.nn.MultiheadAttention": 8,
    "torch.nn.TransformerEncoderLayer": 6,
    "torch.nn.TransformerDecoderLayer": 6,
}
_RECURRENT = frozenset({"torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"})
_STACKS = frozenset({"torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder"})

_BATCH = regex(r"B|b|bs|bsz|bsize|n?_?batch(_?size)?|batch_?sz", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[cst.Call] = set()
    for call in module.tree.all(cst.Call):
        made = _layer(call.func, module)
        if made is None or made in seen or not call.args or not _is_time_first(made, module):
            continue
        evidence = _evidence(call, module.qualified(made.func) in _RECURRENT, module)
        if evidence is not None:
            seen.add(made)
            name = module.code(made.func)
            message = f"`{name}` reads the batch dimension as time: set `batch_first=True`"
            yield Suspicion(made, message, related=(evidence,), fix=_fix(made))


def _layer(func: Node, module: FileFacts) -> cst.Call | None:
    """The constructor call of the called sequence layer; for a stack, that of its layers."""
    made = module.kinds.construction(func)
    if made is not None and module.qualified(made.func) in _STACKS and made.args:
        made = module.kinds.construction(made.args[0].value)
    return made if made is not None and module.qualified(made.func) in _POSITIONS else None


def _is_time_first(made: cst.Call, module: FileFacts) -> bool:
    given = argument(made, "batch_first", _POSITIONS[module.qualified(made.func) or ""])
    return not spreads(made) and (given is None or module.boolean(given) is False)


def _evidence(call: cst.Call, recurrent: bool, module: FileFacts) -> tuple[Node, str] | None:
    """The code around a call that shows a batch-first layout, and why."""
    given = call.args[0].value
    origin = module.kinds.origin(given)
    if isinstance(origin, cst.Call) and _puts_batch_first(origin):
        return origin, "the batch is put first here"
    if isinstance(given, cst.Name) and (sizes := _batch_is_read_first(given, module)) is not None:
        return sizes, "the batch is read as the first size here"
    last = _last_of_second(call, module) if recurrent else None
    return (last, "the last step is taken along the second dimension here") if last is not None else None


def _puts_batch_first(call: cst.Call) -> bool:
    """`x.view(batch_size, length, -1)`."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("view", "reshape"):
        return False
    return len(call.args) == 3 and _is_batch(call.args[0].value) and not _is_batch(call.args[1].value)


def _is_batch(node: Node) -> bool:
    return isinstance(node, cst.Name) and _BATCH.fullmatch(node.value) is not None


def _batch_is_read_first(given: cst.Name, module: FileFacts) -> Node | None:
    """`batch, length, _ = x.shape` for the layer's own input `x`."""
    bound = module.names.definition(given)
    for assign in module.tree.own(module.tree.home(given), cst.Assign):
        target, value = assign.targets[0].target, assign.value
        shape = value.func if isinstance(value, cst.Call) and not value.args else value
        if (
            not isinstance(target, cst.Tuple)
            or len(target.elements) != 3
            or not isinstance(shape, cst.Attribute)
        ):
            continue
        tensor = shape.value
        if shape.attr.value not in ("shape", "size") or not isinstance(tensor, cst.Name) or bound is None:
            continue
        first, second = target.elements[0].value, target.elements[1].value
        if tensor.value == given.value and module.names.definition(tensor) is bound:
            return assign if _is_batch(first) and not _is_batch(second) else None
    return None


def _last_of_second(call: cst.Call, module: FileFacts) -> Node | None:
    """`out[:, -1]` for `out, _ = lstm(x)`."""
    assign = module.tree.parent[call]
    if not isinstance(assign, cst.Assign) or not isinstance(target := assign.targets[0].target, cst.Tuple):
        return None
    out = target.elements[0].value
    if not isinstance(out, cst.Name):
        return None
    for subscript in module.tree.own(module.tree.home(call), cst.Subscript):
        value = subscript.value
        if (
            not isinstance(value, cst.Name)
            or value.value != out.value
            or not _takes_last_of_second(subscript, module)
        ):
            continue
        bound = module.names.definition(value)
        if bound is not None and bound.node is assign:
            return subscript
    return None


def _takes_last_of_second(subscript: cst.Subscript, module: FileFacts) -> bool:
    if len(subscript.slice) < 2:
        return False
    first, second = subscript.slice[0].slice, subscript.slice[1].slice
    everything = isinstance(first, cst.Slice) and first.lower is None and first.upper is None
    return everything and isinstance(second, cst.Index) and module.number(second.value) == -1


def _fix(made: cst.Call) -> ProposedFix | None:
    given = argument(made, "batch_first")
    if given is not None:
        return (
            ProposedFix("put the batch first", (replace(given, "True"),))
            if isinstance(given, cst.Name)
            else None
        )
    edit = add_argument(made, "batch_first=True")
    return ProposedFix("put the batch first", (edit,)) if edit is not None else None
