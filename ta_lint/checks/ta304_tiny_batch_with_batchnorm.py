"""TA304: batch norm is trained on only a few values of each channel."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Suspicion

KEYWORDS = (("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "*backward", "step"),)
AROUND = (("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), ("*backward", "step"))

_TOO_FEW = 8  # the same limit as in the run


def check_run(run: Run) -> Iterator[Suspicion]:
    for call in run.normed:
        if call.values < _TOO_FEW:
            values = f"{call.values} values" if call.values > 1 else "a single value"
            message = (
                f"batch norm is noisy, as it gets {values} of each channel: use larger batches or group norm"
            )
            related = ((call.loader, "the loader is made here"),) if call.loader is not None else ()
            yield Suspicion(call.place, message, {"values per channel": call.values}, related=related)
