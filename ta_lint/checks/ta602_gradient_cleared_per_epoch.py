"""TA602: a training loop steps the optimizer in every pass, but clears gradients only outside of it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.checks.ta600_missing_zero_grad import clear_first
from ta_lint.facts import Clearing, FileFacts, Suspicion, TrainingLoop
from ta_lint.syntax.layout import plain

KEYWORDS = ("step",)
AROUND = (
    "*backward",
    "*grad*",
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loop in module.training_loops:
        if module.clearings.when(loop) is Clearing.OUTSIDE:
            step = loop.steps[0].call
            message = f"`{module.code(step)}` also uses the gradients of earlier steps: call `zero_grad()` in its loop"
            related = tuple((repeat, "the loop") for repeat in loop.loops)
            yield Suspicion(
                step, message, related=related, fix=clear_first(loop, module, _misplaced(loop, module))
            )


def _misplaced(loop: TrainingLoop, module: FileFacts) -> cst.Expr | None:
    """The same optimizer's `zero_grad()` before the loop, in the same statement list."""
    optimizer = loop.steps[0].optimizer
    for statement in module.tree.preceding(loop.region):
        call = statement.value if isinstance(statement, cst.Expr) else None
        if (
            isinstance(statement, cst.Expr)
            and isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "zero_grad"
            and plain(call.func.value) == plain(optimizer)
            and module.tree.block(statement) is module.tree.block(loop.region)
        ):
            return statement
    return None
