"""Numbers into a run of Weights & Biases."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError
from ta_runtime import ranks
from ta_runtime.extras import needs

if TYPE_CHECKING:
    import wandb


class Wandb:
    """Charts over `monitor/step`, the step that the monitor was told.

    It drops what is logged to an earlier step than the last, of whoever logs. So numbers ride along with the row that
    the training logs next, under its own numbering, and become a row of their own where it logs none in between.

    Args:
        run: by default that of `wandb.init()`, on rank 0. It is not finished.
        step: the name of the axis of these charts.
        own_rows: whether numbers become a row of their own where the training logs none in between. Without, the next ones
            take their place, and the numbering of rows stays the training's own.

    Raises:
        UsageError: there is no run; wandb is missing.
    """

    def __init__(
        self, run: "wandb.Run | None" = None, *, step: str = "monitor/step", own_rows: bool = True
    ) -> None:
        with needs("wandb", "wandb"):
            import wandb
        if run is None and not ranks.rank():
            run = wandb.run
            if run is None:
                raise UsageError("Weights & Biases has no run; call `wandb.init()` before, or give `run`")
        self.run = run
        self._step, self._own_rows = step, own_rows
        self._defined: set[str] = set()
        self._row: int | None = None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self.run is None:
            return
        self._define(values)
        row = self.run.step
        if row == self._row and self._own_rows:  # nobody has logged since: this would overwrite what waits
            self.run.log({}, commit=True)
            row += 1
        self.run.log({**values, self._step: step}, commit=False)
        self._row = row

    def tell(self, step: int, name: str, text: str) -> None:
        """Put a text into the summary of the run, in the place of what was there."""
        if self.run is not None:
            self.run.summary[name] = text

    def flush(self) -> None:
        """It sends by itself."""

    def close(self) -> None:
        """The run is of whoever began it."""

    def __str__(self) -> str:
        return "Weights & Biases"

    def _define(self, values: Mapping[str, float]) -> None:
        for key in values:
            group, slash, _ = key.partition("/")
            name = f"{group}/*" if slash else key
            if self.run is not None and name not in self._defined:
                self._defined.add(name)
                self.run.define_metric(name, step_metric=self._step)
