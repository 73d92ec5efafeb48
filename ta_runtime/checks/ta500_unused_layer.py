"""TA500: a layer with parameters that never runs."""

from collections.abc import Iterator

from ta_runtime.facts import Step, Suspicion


def check_step(step: Step) -> Iterator[Suspicion]:
    yield from ()
