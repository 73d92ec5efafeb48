"""Numbers that count the passes of a loop, or what there is to go over, and the conditions that ask for them."""

import ast
from typing import TYPE_CHECKING, Any, Final

from ta_lint.dryrun.machine.factors import Count, Factors, Multiple, combined, number
from ta_lint.dryrun.values import DATA, DIFFERS, Hidden, Known, Setting, Unknown, Value

if TYPE_CHECKING:
    from ta_lint.dryrun.machine.machine import Machine

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
SCALE: Final = "the factor of a gradient scaler"
"""Why a number is not known that is that factor, or a multiple of it."""
COMPUTED: Final = "it is computed"
"""Why a number is not known that something else was made of."""

BOUND: Final = Hidden("how many numbers there are")
"""The key of a range for the number that it ends before."""


def number_of(value: Value) -> int | None:
    """How many times, or up to which number: None if nobody knows, or it is an open setting."""
    is_open = isinstance(value, Setting) and value.is_open
    known = value.value if isinstance(value, Known) and not is_open else None
    return known if isinstance(known, int) else None


class Length(Multiple):
    """How many of something there are, of which `less` are left out, or, divided `by` a number, how many whole parts of that size."""

    __slots__ = ("by", "inner", "less", "measured")

    def __init__(
        self,
        measured: Value,
        *,
        less: int = 0,
        by: Value | None = None,
        why: str = LENGTH,
        factors: Factors | None = None,
        amount: Any = None,
    ) -> None:
        super().__init__(why, "int", factors or Factors(1.0, {Count(measured): 1}), amount=amount)
        self.measured = measured
        self.inner: Length | None = None
        """The length that the object itself gives as its own, such as that of a loader which it holds."""
        self.less = less
        self.by = by


class Cycle(Unknown):
    """A number that has each value every few passes of a loop, or a condition that holds then: each `count` passes."""

    __slots__ = ("count", "restarts")

    def __init__(self, why: str, type: str, count: Value, *, restarts: bool) -> None:
        super().__init__(why, type)
        self.count = count
        self.restarts = restarts
        """Whether each run of the loop counts from its start, and not on from where the last one ended."""


_ADDED = {COUNT: COUNT, LENGTH: LENGTH, CHANGES: CHANGES, CYCLE: CYCLE, DIFFERS: CYCLE}
"""Why a number is not known from which a constant was taken away, or added, by why that is not."""


def limit_passes(machine: "Machine", node: ast.AST, written: ast.expr, over: Value | None) -> None:
    """A loop over something takes no more than so many passes, if that is a number that is written down, and no setting."""
    if isinstance(written, ast.Constant) and isinstance(written.value, int):
        machine.emit("limit", node, over, limit=written.value)


def of_a_count(machine: "Machine", kind: ast.AST, left: Value, right: Value) -> Unknown | None:
    """What is known of a number or a condition that comes from counting the passes of a loop, or what there is to go over."""
    unknown = [one for one in (left, right) if isinstance(one, Unknown)]
    whys = {one.why for one in unknown}
    if isinstance(kind, ast.Mult) and SCALE in whys:
        return Unknown(SCALE, "float")
    if isinstance(kind, (ast.cmpop, ast.Mod)):
        return _asked(kind, left, right) if isinstance(kind, ast.cmpop) else _remainder(machine, left, right)
    if isinstance(kind, ast.FloorDiv) and isinstance(left, Length):  # `len(dataset) // batch_size`
        whole = len(unknown) == 2 and left.why == LENGTH and unknown[1].why != COMPUTED
        return Length(
            left.measured, by=right, why=LENGTH if whole else COMPUTED, factors=combined(kind, left, right)
        )
    if isinstance(kind, ast.Mult):
        floor = next((one for one in unknown if isinstance(one, Length) and one.by is not None), None)
        if floor is None:
            return None
        return Length(floor.measured, by=floor.by, why=COMPUTED, factors=combined(kind, left, right))
    if isinstance(kind, ast.Sub) and isinstance(left, Length) and right == Known(1) and left.by is None:
        return Length(left.measured, less=left.less + 1)
    if isinstance(kind, (ast.Add, ast.Sub)) and (isinstance(left, Known) or isinstance(right, Known)):
        for one in unknown:
            if isinstance(one, Cycle):
                return Cycle(CYCLE, "int", one.count, restarts=one.restarts)
            if one.why in _ADDED and one.type == "int":
                return Unknown(_ADDED[one.why], "int")
    if (
        isinstance(kind, ast.Add)
        and whys & {COUNT, CHANGES}
        and {one.type for one in unknown} <= {"int", DATA}
    ):
        return number(CHANGES, "int", combined(kind, left, right))  # `epoch * len(loader) + index`
    return None


def _asked(kind: ast.cmpop, left: Value, right: Value) -> Unknown | None:
    """A condition on a number that counts."""
    unknown = [one for one in (left, right) if isinstance(one, Unknown)]
    whys = {one.why for one in unknown}
    begins_anew = isinstance(left, Unknown) and left.why == CYCLE and not isinstance(left, Cycle)
    if begins_anew and isinstance(kind, (ast.Eq, ast.GtE)):  # `seen == k`, where `seen` is 0 again after that
        return Cycle(EVERY_FEW, "bool", right, restarts=False)
    if len(unknown) == 1 and isinstance(cycle := unknown[0], Cycle):
        return Cycle(EVERY_FEW, "bool", cycle.count, restarts=cycle.restarts)
    last = LENGTH in whys and len(unknown) == 1  # `epoch == len(epochs) - 1`
    once = isinstance(kind, ast.Eq) and (COUNT in whys or last)
    return Unknown(EVERY_FEW if CYCLE in whys else ONCE, "bool") if CYCLE in whys or once else None


def _remainder(machine: "Machine", left: Value, right: Value) -> Unknown | None:
    if isinstance(right, Unknown) and right.why == LENGTH:  # `step % len(loader)`, in a loop over data
        return Unknown(COUNT, "int") if machine.passes and machine.passes[-1].over is not None else None
    if not isinstance(left, Unknown) or left.why not in (COUNT, CHANGES, CYCLE):
        return None
    return Cycle(CYCLE, "int", right, restarts=left.why == COUNT or _began_here(machine, left))


def _began_here(machine: "Machine", counter: Unknown) -> bool:
    """Whether a number has counted from a constant since the innermost loop began, also in a later pass of the loops around it."""
    around = tuple((one.loop, one.number) for one in machine.passes[:-1])
    batch = getattr(counter.amount, "batch", None)
    return (
        bool(around)
        and all(number for _, number in around)
        and batch is not None
        and batch.passes[:-1] == around
    )
