"""TA159: a decoder generates from rows that end in padding."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.language.prompts:
        evidence = {"padded rows": found.padded, "of them padded at their end": found.padded_after}
        if found.padded_after:
            message = (
                'the model continues the padding, not the prompt: set `padding_side="left"` on the tokenizer'
            )
            yield Suspicion(found.place, message, evidence)
        elif found.padded:
            because = f"all {found.padded} padded rows are padded at the start"
            yield Refutation(found.place, because, evidence)
        else:
            yield Unobserved(found.place, "no prompt is padded")
