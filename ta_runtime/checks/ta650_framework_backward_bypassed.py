"""TA650: backward passes or steps bypassed Accelerate while it had to divide or scale the loss."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_runtime.facts import LoopHistory, Prepared, Run, Said, Suspicion, Unobserved
from ta_runtime.probes.places import Place

FEW = 2
"""Steps needed for a finding."""


def check_progress(run: Run) -> Iterator[Said]:
    if not run.prepared.backwards and not run.prepared.bypassing:
        return
    for place, times in _plain_backwards(run).items():
        what, cure = "the backward pass goes past Accelerate", "call `accelerator.backward`"
        yield from _judged(place, times, what, cure, run.prepared)
    for place, times in _bare_steps(run).items():
        what, cure = "this optimizer is unknown to Accelerate", "pass it to `prepare`"
        yield from _judged(place, times, what, cure, run.prepared)


def _judged(place: Place, times: int, what: str, cure: str, prepared: Prepared) -> Iterator[Said]:
    if times < FEW:
        return
    if prepared.duties:
        message = f"{what}, which {' and '.join(prepared.duties)}: {cure}"
        yield Suspicion(place, message, {"steps": times})
    elif prepared.processes == 1:
        yield Unobserved(
            place, "one process, one batch a step and no loss scaling leave Accelerate nothing to do"
        )


def _plain_backwards(run: Run) -> Counter[Place]:
    """The lines that go back by themselves for steps of a prepared optimizer, with the number of those steps."""
    found: Counter[Place] = Counter()
    for history in run.loop.histories:
        for places, step, times in _steps(history):
            if step in run.prepared.steps:
                found.update({place: times for place in places if place in run.prepared.bypassing})
    return found


def _bare_steps(run: Run) -> Counter[Place]:
    """The lines at which an optimizer that was not prepared steps along gradients of `accelerator.backward`."""
    found: Counter[Place] = Counter()
    for history in run.loop.histories:
        for places, step, times in _steps(history):
            if step in run.prepared.bare_steps and any(place in run.prepared.backwards for place in places):
                found[step] += times
    return found


def _steps(history: LoopHistory) -> Iterator[tuple[set[Place], Place, int]]:
    """The steps of an optimizer: the lines of their backward passes, their own lines, and how often."""
    for pattern, times in history.patterns.items():
        last = pattern[-1][0]
        if last.action is Action.STEP:
            yield {event.place for event, _ in pattern if event.action is Action.BACKWARD}, last.place, times
