"""TA616: the state restored or saved as the best is the model's own, and later training changed it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for kept in run.checkpoints.kept:
        evidence = {
            "kept at step": kept.taken_at,
            "used at step": kept.used_at,
            "tensors": kept.tensors,
            "shared with the model": kept.shared,
        }
        if kept.shared:
            message = "the state kept here changed with training before it was used: keep a `deepcopy`"
            yield Suspicion(kept.place, message, evidence, related=((kept.used, "it is used here"),))
        else:
            because = f"none of {kept.tensors} tensors kept at step {kept.taken_at} is the model's own"
            yield Refutation(kept.place, because, evidence)
