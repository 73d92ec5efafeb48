"""TA525: one term of a loss is a mean over all elements, another a sum over them that is far larger."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion, Unobserved

_ROW = 4
_LOOKS = 16


def check_progress(run: Run) -> Iterator[Said]:
    for balance in run.balances:
        if balance.in_a_row >= _ROW:
            message = "the sum added to this mean is over 50 times as large and drowns it: use one reduction for both"
            numbers = {"sum over mean": float(f"{balance.ratio:.3g}")}
            yield Suspicion(balance.place, message, numbers, shows_elsewhere=True)
        elif balance.looks >= _LOOKS and not balance.above:
            because = (
                f"in {balance.looks} looks the sum is {balance.ratio:.3g} times the mean, never above 50"
            )
            numbers = {"looks": balance.looks, "sum over mean": float(f"{balance.ratio:.3g}")}
            yield Refutation(balance.place, because, numbers)
        elif balance.looks < _LOOKS:
            yield Unobserved(balance.place, f"{balance.looks} looks, too few to tell")
