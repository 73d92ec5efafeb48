"""TA429: the state of a network is repeatedly loaded into itself: what should be a copy is a second name."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion

TIMES = 2
"""Loads of one line that change nothing. Once, at the start, does no harm: a state to which nothing was added, say."""


def check_progress(run: Run) -> Iterator[Said]:
    for loading in run.loadings:
        numbers = {"loads": loading.times, "onto itself": loading.onto_itself, "tensors": loading.tensors}
        if loading.onto_itself >= TIMES and loading.onto_itself == loading.times:
            yield Suspicion(
                loading.place,
                "a network loads its own state, so the target is no copy: make it by `deepcopy`",
                numbers,
            )
        elif not loading.onto_itself:
            because = f"none of {loading.times} loads is of a network's own tensors"
            yield Refutation(loading.place, because, numbers)
