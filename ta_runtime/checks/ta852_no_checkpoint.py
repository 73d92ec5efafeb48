"""TA852: a run trains a model and never saves it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_run(run: Run) -> Iterator[Said]:
    place = run.checkpoints.stepped_at
    if place is None:
        return
    if run.checkpoints.saved:
        lines = {saved.place for saved in run.checkpoints.saved}
        because = f"{len(lines)} lines save weights in {run.steps} steps"
        yield Refutation(place, because, {"steps": run.steps, "lines that save": len(lines)})
    else:
        yield Suspicion(
            place,
            "the trained model is lost when this run ends: save its `state_dict()`",
            {"steps": run.steps},
            shows_elsewhere=True,
        )
