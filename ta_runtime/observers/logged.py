"""Sees the values that the run itself logs: accuracy, validation loss, whatever goes to TensorBoard, W&B or MLflow.

They are read when the tracker has taken them, and so has waited for the device where that was needed.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ta_runtime.observers.observer import Observer
from ta_runtime.probes.logs import TRACKERS
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.work import OWN_WORK

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_NESTED = "."
"""Between the name of a dictionary and a name in it, as W&B has it."""


class LoggedValues(Observer):
    """Watches the trackers of a run that is recorded, from when it has loaded them."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = session.settings.record is not None
        self._loaded = 0

    def begin(self, window: "Window") -> None:
        self._look()

    def epoch(self, call: Call) -> None:  # of an evaluation before the first step
        self._look()

    def detach(self) -> None:
        super().detach()
        self._loaded = 0

    def _look(self) -> None:
        loaded = sum(module in sys.modules for module in TRACKERS) if self._wanted else 0
        if loaded > self._loaded:
            self.undo()
            self._loaded = loaded
            for event, values in _VALUES.items():
                self._listen(event, partial(self._logs, values))

    def _logs(self, values: Callable[[Call], object], call: Call) -> End | None:
        is_ours = OWN_WORK.depth > 1  # what a monitor or the audit sends
        return None if is_ours else partial(self._logged, values)

    def _logged(self, values: Callable[[Call], object], call: Call) -> None:
        if not call.raised and (found := numbers(values(call))):
            self.session.logs(found)


def _of_batch(call: Call) -> object:
    metrics: Any = call.given(2, "metrics")
    return {metric.key: metric.value for metric in metrics} if isinstance(metrics, list | tuple) else None


_VALUES: dict[str, Callable[[Call], object]] = {
    "add_scalar": lambda call: {call.given(1, "tag"): call.given(2, "scalar_value")},
    "add_scalars": lambda call: {
        f"{call.given(1, 'main_tag')}/{name}": value
        for name, value in dict(call.given(2, "tag_scalar_dict")).items()
    },
    "log_row": lambda call: call.given(1, "data"),
    "log_metric": lambda call: {call.given(2, "key"): call.given(3, "value")},
    "log_batch": _of_batch,
}
"""What a call of each event logs."""


def numbers(values: object) -> dict[str, float]:
    """The numbers of what was logged, by name; what is no number is left out."""
    return dict(_numbers(values)) if isinstance(values, Mapping) else {}


def _numbers(values: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{name}{_NESTED}")
        elif (number := _number(value)) is not None:
            yield f"{before}{name}", number


def _number(value: Any) -> float | None:
    """A number of Python or NumPy, or that in a tensor of one element; None for anything else, whatever it may read as."""
    if type(value) in (Tensor, nn.Parameter):
        is_one = value.numel() == 1 and not value.is_complex() and not value.is_meta
        return float(value.detach().item()) if is_one else None
    if type(value).__module__ == "numpy" and getattr(value, "size", 0) == 1:
        value = value.item()
    is_huge = isinstance(value, int) and abs(value) > sys.float_info.max
    return float(value) if isinstance(value, int | float) and not is_huge else None
