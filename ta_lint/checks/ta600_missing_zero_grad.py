"""TA600: a training loop steps the optimizer and never clears gradients, so every step adds to all before it."""

from collections.abc import Iterator

from ta_lint.facts import Clearing, Module, Suspicion

NEEDS = (
    r"backward\s*\(",
    r"\.step\s*\(\s*\)|[Ss]caler",
    r"\.step\s*\(",
    r"^[ \t]*(?:async[ \t]+)?(?:for|while)\b",
)


def check(module: Module) -> Iterator[Suspicion]:
    for loop in module.training_loops:
        if module.loops.clearing(loop) is Clearing.NEVER:
            step = loop.steps[0].call
            message = f"`{module.code(step)}` runs in a loop that never clears gradients"
            yield Suspicion(step, message, related=tuple((repeat, "the loop") for repeat in loop.loops))
