"""TA155: batches of a PEFT model contain new tokens, but the embedding table with their rows is frozen."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.adapted_models:
        if found.new_rows:
            message = (
                "embeddings of new tokens stay random and frozen: list them in `trainable_token_indices`"
            )
            related = ((found.called_at, "it is called in training mode here"),)
            yield Suspicion(found.place, message, {"batches": found.new_rows}, related=related)
        elif found.trained_tables:
            because = f"the embedding table trains in {found.trained_tables} calls"
            yield Refutation(found.place, because, {"calls with a table that trains": found.trained_tables})
        else:
            yield Unobserved(found.place, "no batch has a new token")
