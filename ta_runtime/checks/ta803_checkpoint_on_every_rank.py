"""TA803: several ranks write the same file and may corrupt it: write it on rank 0."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_run(run: Run) -> Iterator[Said]:
    told = {run.rank: run.told, **run.peers}
    if not run.peers:
        return
    writers: dict[tuple[str, str], set[int]] = {}
    for rank, rank_told in told.items():
        for saved in rank_told.saved:
            writers.setdefault((saved.host, saved.path), set()).add(rank)
    entries = dict.fromkeys(saved for rank_told in told.values() for saved in rank_told.saved)
    for saved in entries:
        ranks = writers[saved.host, saved.path]
        if len(ranks) > 1:
            message = "several ranks write the same file and may corrupt it: write it on rank 0"
            listed = ",".join(map(str, sorted(ranks)))
            yield Suspicion(saved.place, message, {"writers": len(ranks), "ranks": listed})
        else:
            because = f"one of {len(told)} ranks writes the file"
            yield Refutation(saved.place, because, {"writers": 1, "ranks in all": len(told)})
