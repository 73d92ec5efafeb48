"""TA852: a run trains a model and never saves it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion


def check_run(run: Run) -> Iterator[Suspicion | Refutation]:
    place = run.checkpoints.stepped_at
    if place is None:
        return
    if run.checkpoints.saved:
        lines = {saved.place for saved in run.checkpoints.saved}
        yield Refutation(place, {"steps": run.steps, "lines that save": len(lines)})
    else:
        yield Suspicion(
            place,
            "the trained model is lost when this run ends: save its `state_dict()`",
            {"steps": run.steps},
        )
