"""TA430: a sequence layer without `batch_first=True` is used as if the batch came first."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, add_argument, replace
from ta_lint.syntax.tree import Node, argument

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

_REDUCTIONS = frozenset("amax max mean sum".split())

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
    return module.flow.lacks(made, "batch_first") if given is None else module.boolean(given) is False


def _evidence(call: cst.Call, recurrent: bool, module: FileFacts) -> tuple[Node, str] | None:
    """The code around a call that shows a batch-first layout, and why."""
    given = call.args[0].value
    origin = module.kinds.origin(given)
    if isinstance(origin, cst.Call) and _puts_batch_first(origin):
        return origin, "the batch is put first here"
    if isinstance(given, cst.Name) and (sizes := _batch_is_read_first(given, module)) is not None:
        return sizes, "the batch is read as the first size here"
    for use in _uses(call, module):
        if (last := _step_of_second(use, module, (-1,) if recurrent else (0, -1))) is not None:
            return last, "a step is taken along the second dimension here"
        if not _has_one_sample(origin) and (reduced := _over_second(use, module)) is not None:
            return reduced, "the second dimension is gone over as time here"
    return None


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


def _uses(call: cst.Call, module: FileFacts) -> Iterator[Node]:
    """The uses of what a layer gives: `out` after `out, _ = lstm(x)`, or the call itself."""
    assign = module.tree.parent[call]
    if not isinstance(assign, cst.Assign):
        yield call
        return
    target: Node = assign.targets[0].target
    out = target.elements[0].value if isinstance(target, cst.Tuple) else target
    for mention in module.names.mentions(out) if isinstance(out, cst.Name) else ():
        bound = module.names.definition(mention)
        if bound is not None and bound.node is assign:
            yield mention


def _step_of_second(use: Node, module: FileFacts, steps: tuple[int, ...]) -> Node | None:
    """`out[:, -1]`."""
    item = module.tree.parent[use]
    if not isinstance(item, cst.Subscript) or item.value is not use or len(item.slice) < 2:
        return None
    first, second = item.slice[0].slice, item.slice[1].slice
    everything = isinstance(first, cst.Slice) and first.lower is None and first.upper is None
    taken = module.number(second.value) if isinstance(second, cst.Index) else None
    return item if everything and taken in steps else None


def _over_second(use: Node, module: FileFacts) -> Node | None:
    """`out.mean(dim=1)`."""
    method = module.tree.parent[use]
    call = module.tree.parent[method]
    if not isinstance(method, cst.Attribute) or not isinstance(call, cst.Call) or call.func is not method:
        return None
    dim = argument(call, "dim", 0) if method.attr.value in _REDUCTIONS else None
    return call if dim is not None and module.number(dim) == 1 else None


def _has_one_sample(origin: Node) -> bool:
    """Whether a batch of one is made here: `x.unsqueeze(1)`."""
    return isinstance(origin, cst.Call) and called_name(origin) == "unsqueeze"


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
