"""TA811: a number is read from a DTensor whose parts on the ranks are not yet combined."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for read in run.reads:
        evidence: dict[str, float | int | str] = {
            "placements": read.placements,
            "parts": read.parts,
            "value read": read.value,
        }
        if read.parts > 1:
            yield Suspicion(
                read.place,
                "this reads only this rank's part of a sharded number: call `full_tensor()` first",
                evidence,
            )
        elif "Partial" in read.placements:
            yield Unobserved(read.place, "the number is that of one rank")
        else:
            yield Refutation(read.place, "its parts are combined before", evidence)
