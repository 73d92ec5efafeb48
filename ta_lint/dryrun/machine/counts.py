"""Numbers that count the passes of a loop, or what there is to go over, and the conditions that ask for them."""

import ast
from typing import Final

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import DIFFERS, Known, Unknown, Value

COUNT: Final = "the number of the pass"
"""Why a number is not known that counts the passes of a loop: it has each value once."""
LENGTH: Final = "a length"
"""Why a number is not known that says how many of something there are: so many steps are one pass over it."""
ONCE: Final = "it holds in one pass"
"""Why a condition is not known that asks for one of these values."""
CHANGES: Final = "it changes from pass to pass"
"""Why a number is not known that a loop changes in each pass."""
CYCLE: Final = "it comes round again"
"""Why a number is not known that has each value every few passes: a remainder of a count, or a count that begins anew."""
EVERY_FEW: Final = "it holds every few passes"
"""Why a condition is not known that asks for one of these values."""
COMPUTED: Final = "it is computed"
"""Why a number is not known that something else was made of."""

_ADDED = {COUNT: COUNT, LENGTH: LENGTH, CHANGES: CHANGES, CYCLE: CYCLE, DIFFERS: CYCLE}
"""Why a number is not known from which a constant was taken away, or added, by why that is not."""


def of_a_count(machine: Machine, kind: ast.AST, left: Value, right: Value) -> Unknown | None:
    """What is known of a number or a condition that comes from counting the passes of a loop, or what there is to go over."""
    unknown = [one for one in (left, right) if isinstance(one, Unknown)]
    whys = {one.why for one in unknown}
    if isinstance(kind, ast.cmpop):
        last = LENGTH in whys and len(unknown) == 1  # `epoch == len(epochs) - 1`
        once = isinstance(kind, ast.Eq) and (COUNT in whys or last)
        return Unknown(EVERY_FEW if CYCLE in whys else ONCE, "bool") if CYCLE in whys or once else None
    if isinstance(kind, ast.Mod):
        if isinstance(right, Unknown) and right.why == LENGTH:  # `step % len(loader)`, in a loop over data
            return Unknown(COUNT, "int") if machine.passes and machine.passes[-1].over is not None else None
        return Unknown(CYCLE, "int") if left in unknown and left.why in (COUNT, CHANGES, CYCLE) else None
    if isinstance(kind, ast.FloorDiv) and len(unknown) == 2:  # `len(dataset) // batch_size`
        whole = unknown[0].why == LENGTH and unknown[1].why != COMPUTED
        return Unknown(LENGTH, "int") if whole else None
    if isinstance(kind, ast.Add | ast.Sub) and (isinstance(left, Known) or isinstance(right, Known)):
        for one in unknown:
            if one.why in _ADDED and one.type == "int":
                return Unknown(_ADDED[one.why], "int")
    return None
