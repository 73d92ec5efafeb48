"""TA710: a checkpoint does not hold the state that the model has."""

from collections.abc import Iterator

from ta_runtime.facts import Run, SavedState, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion]:
    for saved in run.checkpoints.saved:
        kept: dict[str, int | str] = {"saved as they are": saved.kept}
        if lost := _lost(saved, run):
            message = "trained parameters are missing from the checkpoint: save the whole `state_dict()`"
            yield Suspicion(saved.place, message, {"missing": len(lost), "first": lost[0], **kept})
        elif saved.changed:
            message = (
                "the checkpoint holds other values than the trained parameters: save the model that trains"
            )
            evidence = {"changed": len(saved.changed), "first": saved.changed[0], **kept}
            yield Suspicion(saved.place, message, evidence)


def _lost(saved: SavedState, run: Run) -> list[str]:
    """What is lost, not only saved into another file by the same line: a state may be written in shards."""
    shards = [one for one in run.checkpoints.saved if (one.place, one.step) == (saved.place, saved.step)]
    return [name for name in saved.lost if not any(name in shard.names for shard in shards)]
