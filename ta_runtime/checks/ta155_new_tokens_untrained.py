"""TA155: batches of a PEFT model contain new tokens, but the embedding table with their rows is frozen."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for found in run.adapted_models:
        if found.new_rows:
            message = (
                "embeddings of new tokens stay random and frozen: list them in `trainable_token_indices`"
            )
            related = ((found.called_at, "it is called in training mode here"),)
            yield Suspicion(found.place, message, {"batches": found.new_rows}, related=related)
        elif found.trained_tables:
            yield Refutation(found.place, {"calls with a table that trains": found.trained_tables})
