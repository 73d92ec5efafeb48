"""TA560: the last entry of a schedule is never drawn, although sampling starts with it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for drawn in run.timesteps:
        numbers = {"drawn below": drawn.end, "entries of the schedule": drawn.entries}
        if drawn.end == drawn.entries - 1 and not drawn.others:
            yield Suspicion(
                drawn.place,
                "sampling starts at the last entry of the schedule, which is never trained: raise the end by 1",
                numbers,
            )
        elif drawn.end == drawn.entries:
            because = f"draws reach the last of {drawn.entries} entries"
            yield Refutation(drawn.place, because, numbers)
