"""TA157: rows begin with two begin tokens: the chat template and the tokenizer each added one."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Rows, Run, Said, Suspicion, Unobserved

FEW = 4
"""Rows that a verdict needs."""


def check_progress(run: Run) -> Iterator[Said]:
    rows: list[Rows] = [*run.language.batches, *run.language.prompts]
    for found in rows:
        if found.rows < FEW or not found.begun:
            why = (
                "no row begins with a begin token"
                if found.rows >= FEW
                else f"{found.rows} rows, too few to tell"
            )
            yield Unobserved(found.place, why)
            continue
        evidence = {"rows": found.rows, "of them with two begin tokens": found.doubled}
        if found.doubled == found.rows:
            message = "each row begins with two begin tokens: tokenize with `add_special_tokens=False`"
            yield Suspicion(found.place, message, evidence)
        elif not found.doubled:
            yield Refutation(found.place, f"none of {found.rows} rows begins with two begin tokens", evidence)
