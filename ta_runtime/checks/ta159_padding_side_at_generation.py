"""TA159: a decoder generates from rows that end in padding."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for found in run.language.prompts:
        evidence = {"padded rows": found.padded, "of them padded at their end": found.padded_after}
        if found.padded_after:
            message = (
                'the model continues the padding, not the prompt: set `padding_side="left"` on the tokenizer'
            )
            yield Suspicion(found.place, message, evidence)
        elif found.padded:
            yield Refutation(found.place, evidence)
