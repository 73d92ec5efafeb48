"""TA327: a sum or metric accumulates over the epochs, but is used as that of one epoch."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.losses import unwrapped
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = ("for", ("len", "torchmetrics"))

_METRIC = regex(r"torchmetrics\.(\w+\.)*[A-Z]\w*")
_GATHERS, _GIVES = "update", "compute"
_MOVES = "to"
_GROWS = frozenset({"add", "append", "extend", "update"})
_OF_ALL = regex(r"total|cumul|overall|global|lifetime|all", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    yield from _sums(module)
    yield from _metrics(module)


def _metrics(module: FileFacts) -> Iterator[Suspicion]:
    """Metrics of torchmetrics that are computed after the batches of each epoch, and that nothing resets."""
    if module.loops.framework is not None:
        return
    for made, _ in module.calls_matching(_METRIC):
        above = module.tree.parent[made]
        moving = module.tree.parent[above] if isinstance(above, cst.Attribute) else None
        is_moved = isinstance(moving, cst.Call) and called_name(moving) == _MOVES
        uses = module.whereabouts.uses(moving if is_moved and isinstance(moving, cst.Call) else made) or {}
        if not uses.keys() <= {_GATHERS, _GIVES, _MOVES} or _OF_ALL.search(
            module.code(module.tree.statement(made))
        ):
            continue
        for computing in uses.get(_GIVES, []):
            epochs = next(iter(module.tree.loops(computing)), None)
            if epochs is None or module.tree.contains(epochs, made):
                continue
            after = [one for one in uses.get(_GATHERS, []) if _is_in_batches(one, epochs, computing, module)]
            if after:
                message = f"`{module.code(computing.value)}` is never reset and covers all epochs so far: call `reset()` in each epoch"
                related = ((after[0], "it gathers here"), (computing, "computed here"))
                yield Suspicion(made, message, related, in_tests=False)
                break


def _is_in_batches(gathering: Node, epochs: Node, computing: Node, module: FileFacts) -> bool:
    """Whether a metric gathers in a loop inside the one over the epochs, and is computed after that loop."""
    batches, *around = module.tree.loops(gathering) or (None,)
    return around[:1] == [epochs] and batches is not None and not module.tree.contains(batches, computing)


def _sums(module: FileFacts) -> Iterator[Suspicion]:
    """Sums that are divided by the size of an epoch."""
    reported: set[Node] = set()
    for added in module.tree.all(cst.AugAssign):
        total = added.target
        if not isinstance(total, cst.Name) or not isinstance(added.operator, cst.AddAssign):
            continue
        batches, *around = module.tree.loops(added) or (added,)
        if not around or module.number(added.value) is not None:
            continue
        bound = [binding.node for binding in module.names.bindings(total) if binding.node is not added]
        if not bound or any(module.tree.contains(around[-1], node) for node in bound):
            continue
        for division in _divisions(total, batches, around[0], module):
            if division not in reported:
                reported.add(division)
                message = f"`{total.value}` sums all epochs but is divided by the size of one: reset it in each epoch"
                yield Suspicion(
                    division, message, ((added, "added here"), (bound[0], "set here, before all epochs"))
                )


def _divisions(
    total: cst.Name, batches: Node, epochs: Node, module: FileFacts
) -> Iterator[cst.BinaryOperation]:
    """Where a total is divided by the size of an epoch, after the batches of each."""
    for operation in module.tree.own(epochs, cst.BinaryOperation):
        is_after = module.tree.before(batches, operation) and not module.tree.contains(batches, operation)
        if (
            is_after
            and isinstance(operation.operator, cst.Divide)
            and _is_number_of(operation.left, total.value, module)
            and _is_length(operation.right, epochs, module)
            and not isinstance(module.tree.parent[operation], cst.BinaryOperation)
        ):
            yield operation


def _is_number_of(value: Node, total: str, module: FileFacts) -> bool:
    """Whether an expression is the total, or so many times it: `100 * correct`."""
    value = unwrapped(value, module.names)
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Multiply):
        sides = value.left, value.right
        return any(module.number(side) is not None for side in sides) and any(
            is_name(unwrapped(side, module.names), total) for side in sides
        )
    return is_name(value, total)


def _is_length(value: Node, epochs: Node, module: FileFacts) -> bool:
    """Whether a value is the length of something that the epochs do not add to."""
    origin = module.kinds.origin(value)
    if not isinstance(origin, cst.Call) or called_name(origin) != "len" or len(origin.args) != 1:
        return False
    counted = origin.args[0].value
    return not any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value in _GROWS
        and dotted(call.func.value) == dotted(counted)
        for call in module.tree.within(epochs, cst.Call)
    )
