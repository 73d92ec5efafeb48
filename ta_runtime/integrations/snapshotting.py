"""The snapshots of a training that a framework holds: they begin and end with it, and count its steps."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from torch import nn

from ta_runtime.integrations.watch import quietly

if TYPE_CHECKING:
    import torch

    from ta_runtime.snapshot import Snapshots
    from ta_runtime.snapshot.schedule import Schedule


class SnapshotOptions(TypedDict, total=False):
    """Arguments of `Snapshots`, with the same defaults."""

    schedule: "str | Schedule | Callable[[int], object]"
    of: Iterable[str]
    statistics: str | Iterable[str]
    mask: bool | Sequence[str]
    form: Literal["columns", "yaml"]


class Snapshotting:
    """A callback of a framework that takes snapshots; it stands before the framework's own class."""

    def __init__(self, folder: str | Path, **options: Unpack[SnapshotOptions]) -> None:
        """What is taken, when, and where to.

        Args:
            folder: that of the run, which must hold none yet. A second training with the same callback writes into
                another beside it, `runs/a.2` for `runs/a`.
            options: those of `ta_runtime.snapshot.Snapshots`.

        Raises:
            TypeError: there is no such option.
            UsageError: an option is wrong, or the folder holds a run already; pyarrow is missing.
        """
        super().__init__()
        if unknown := options.keys() - SnapshotOptions.__annotations__.keys():
            raise TypeError(f"`Snapshots` has no argument {', '.join(sorted(unknown))}")
        self._folder = Path(folder)
        self._options = options
        self._trainings = 0
        self._snapshots: Snapshots | None = None
        self._new(self._folder)  # what is wrong is said now

    @property
    def snapshots(self) -> "Snapshots | None":
        """Those of the training that runs."""
        return self._snapshots

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_snapshots": None}

    def _new(self, folder: Path, *model_and_optimizers: Any) -> "Snapshots":
        from ta_runtime.snapshot import Snapshots  # and pyarrow

        return Snapshots(folder, *model_and_optimizers, **self._options)

    def _begin(
        self, model: nn.Module, optimizers: "Iterable[torch.optim.Optimizer] | None", step: int = 0
    ) -> None:
        self._end()  # an earlier training raised, and nobody was told
        with quietly():
            self._trainings += 1
            folder = self._folder
            if self._trainings > 1:
                folder = folder.with_name(f"{folder.name}.{self._trainings}")
            self._snapshots = self._new(folder, model, optimizers)
            self._snapshots.start()
            self._snapshots.count_from(step)

    def _pause(self, paused: bool) -> None:
        if self._snapshots is not None:
            self._snapshots.paused = paused

    def _end(self) -> None:
        snapshots, self._snapshots = self._snapshots, None
        if snapshots is not None:
            with quietly():
                snapshots.stop()
