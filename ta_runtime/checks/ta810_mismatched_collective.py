"""TA810: the ranks of a group call a collective with arguments that do not match."""

from collections.abc import Iterator

from ta_runtime.facts import Mismatch, Suspicion


def check_collective(mismatch: Mismatch) -> Iterator[Suspicion]:
    own = mismatch.own
    first, second = sorted([(mismatch.rank, mismatch.value), (mismatch.other_rank, mismatch.other_value)])
    evidence: dict[str, float | int | str] = {
        f"{mismatch.what} on rank {rank}": value if isinstance(value, (int, str)) else str(value)
        for rank, value in (first, second)
    }
    evidence |= {"call of the group": own.number, "ranks": f"{first[0]},{second[0]}"}
    message = f"ranks differ in the {mismatch.what} of this `{own.name}` and hang or fail: make it equal"
    yield Suspicion(own.place, message, evidence)
