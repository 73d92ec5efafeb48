"""TA602: a training loop steps the optimizer in every pass and clears gradients only outside of it."""

from collections.abc import Iterator

from ta_lint.checks.ta600_missing_zero_grad import NEEDS as LOOP_NEEDS
from ta_lint.facts import Clearing, Module, Suspicion

NEEDS = (*LOOP_NEEDS, r"grad")


def check(module: Module) -> Iterator[Suspicion]:
    for loop in module.training_loops:
        if module.loops.clearing(loop) is Clearing.OUTSIDE:
            step = loop.steps[0].call
            message = f"`{module.code(step)}` runs in a loop, and gradients are cleared only outside of it"
            yield Suspicion(step, message, related=tuple((repeat, "the loop") for repeat in loop.loops))
