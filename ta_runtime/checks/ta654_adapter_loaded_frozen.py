"""TA654: a PEFT model is called to train, but nothing in it requires a gradient."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.adapted_models:
        if found.frozen and not found.trained:
            message = "nothing in this model requires a gradient: load its adapter with `is_trainable=True`"
            related = ((found.called_at, "it is called in training mode here"),)
            yield Suspicion(found.place, message, {"calls": found.frozen}, related=related)
        elif found.trained:
            because = f"an adapter trains in {found.trained} calls"
            yield Refutation(found.place, because, {"calls with an adapter that trains": found.trained})
