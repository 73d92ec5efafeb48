"""TA525: one term of a loss is a mean over all elements, another a sum over them that is far larger."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion

_ROW = 4
_LOOKS = 16


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for balance in run.balances:
        if balance.in_a_row >= _ROW:
            message = "the sum added to this mean is over 50 times as large and drowns it: use one reduction for both"
            yield Suspicion(balance.place, message, {"sum over mean": float(f"{balance.ratio:.3g}")})
        elif balance.looks >= _LOOKS and not balance.above:
            yield Refutation(
                balance.place, {"looks": balance.looks, "sum over mean": float(f"{balance.ratio:.3g}")}
            )
