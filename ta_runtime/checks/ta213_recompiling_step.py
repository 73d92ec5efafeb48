"""TA213: a function is recompiled again and again, or torch has given up compiling it."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

MANY = 3
"""Compilations after the warm-up: a new shape that then becomes dynamic needs two."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    for found in run.compilations:
        evidence: dict[str, int | str] = {"compilations": found.times, "guard that failed last": found.guard}
        if found.gave_up:
            message = f"`{found.name}` is recompiled until torch gives up and runs it uncompiled: see `TORCH_LOGS=recompiles`"
            yield Suspicion(found.place, message, evidence)
        elif found.late >= MANY:
            message = f"`{found.name}` is compiled again and again, which stalls the run: see `TORCH_LOGS=recompiles`"
            yield Suspicion(found.place, message, {**evidence, "after the first steps": found.late})
