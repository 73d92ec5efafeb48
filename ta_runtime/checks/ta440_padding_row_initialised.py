"""TA440: the row of `padding_idx` is random when a model first runs, because a line drew over its zeros."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for found in run.padding_rows:
        if found.filled:
            message = "this overwrites the zero row of `padding_idx`, which never trains: zero that row again"
            related = ((found.built_at, "the embedding is built here"),)
            yield Suspicion(found.place, message, {"rows": found.filled}, related=related)
        elif found.rows:
            because = f"{found.rows} padding rows are zero, or were written again"
            yield Refutation(found.place, because, {"rows that are zero or written again": found.rows})
