"""TA327: a sum goes on over the epochs and is divided by the size of one."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.losses import unwrapped
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, is_name

KEYWORDS = ("for", "len")


def check(module: FileFacts) -> Iterator[Suspicion]:
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
                message = f"`{total.value}` is never set back, so that it is the sum of all epochs, divided by the size of one"
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
            and _is_length(operation.right, module)
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


def _is_length(value: Node, module: FileFacts) -> bool:
    origin = module.kinds.origin(value)
    return isinstance(origin, cst.Call) and called_name(origin) == "len" and len(origin.args) == 1
