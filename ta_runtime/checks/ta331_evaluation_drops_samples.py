"""TA331: an evaluation loader left out the samples of its last batch."""

from collections.abc import Iterator

from ta_runtime.facts import Loader, Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        dropped = _dropped(loader)
        if dropped is None or not loader.samples:
            continue
        numbers = {"samples": loader.samples, "left out": dropped}
        if loader.trained or not dropped:
            because = (
                f"its batches are trained on in {loader.trained} steps"
                if loader.trained
                else f"batches of {loader.batch_size} leave out none of {loader.samples} samples"
            )
            yield Refutation(loader.place, because, {**numbers, "steps of training": loader.trained})
        elif loader.evaluates and any(each.ended for each in loader.passes):
            message = (
                f"{dropped} of {loader.samples} samples are left out of the evaluation: set `drop_last=False`"
            )
            yield Suspicion(loader.place, message, numbers)


def _dropped(loader: Loader) -> int | None:
    """How many samples a pass leaves out; None if its loader drops none by its settings, or cannot tell."""
    if not loader.drop_last or loader.samples is None or not loader.batch_size:
        return None
    return loader.samples % loader.batch_size
