"""TA653: the head of a PEFT model was initialised at random in this run, and is frozen while adapters train."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.adapted_models:
        if found.random_heads:
            names = ", ".join(f"`{name}`" for name in found.random_heads)
            message = f"{names} was made at random and is frozen: set `task_type` or `modules_to_save`"
            related = ((found.called_at, "it is called in training mode here"),)
            yield Suspicion(found.place, message, {"heads": len(found.random_heads)}, related=related)
        elif found.trained_heads:
            yield Refutation(
                found.place, f"{found.trained_heads} heads train", {"heads that train": found.trained_heads}
            )
