"""TA800: a training run without a seed cannot be repeated."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    seeds = run.seeds
    if seeds.started is None:
        return
    if seeds.seed is None:
        yield Suspicion(
            seeds.started, "this run trains without a seed and cannot be repeated: call `torch.manual_seed`"
        )
    else:
        yield Refutation(seeds.started, f"the seed is {seeds.seed}", {"seed": seeds.seed})
