"""Callbacks for Lightning's Trainer, also under its old name `pytorch_lightning`."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

from ta_runtime.integrations import needs
from ta_runtime.integrations.monitoring import EVERY, Monitored, MonitorOptions
from ta_runtime.integrations.snapshotting import Snapshotting
from ta_runtime.integrations.watch import Watching, WatchOptions, quietly
from ta_runtime.monitor import ModuleMonitor
from ta_runtime.probes.patching import Call, End, attribute

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.loggers import Logger
else:

    def _callbacks() -> tuple[type, ...]:
        """`Callback` of each Lightning in use: the two names are two packages, each with a class of its own."""
        names = ["lightning.pytorch", "pytorch_lightning"]
        used = [name for name in names if name in sys.modules]
        there = [name for name in names if find_spec(name.partition(".")[0]) is not None]
        with needs("lightning"):
            return tuple(import_module(name).Callback for name in used or there[:1] or names[:1])

    Callback = type("Callback", _callbacks(), {})


class AuditCallback(Watching, Callback):
    """Watches `fit`, from its setup to its end; `validate`, `test` and `predict` train nothing.

    The loggers of the Trainer get `ta/errors` and `ta/warnings`, how many findings there are, whenever that changes.
    """

    def __init__(self, **options: Unpack[WatchOptions]) -> None:
        super().__init__(**options)
        self._logged: dict[str, int] = {}

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        if stage == "fit":
            self._watch.begin()

    def on_train_batch_end(self, trainer: "Trainer", *args: Any, **kwargs: Any) -> None:
        self._log(trainer)

    def on_exception(
        self, trainer: "Trainer", pl_module: "LightningModule", exception: BaseException
    ) -> None:
        self._watch.end(exception)

    def teardown(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        if stage == "fit":
            self._watch.end()
            self._log(trainer)

    def _log(self, trainer: "Trainer") -> None:
        if self._logged != self._watch.counts:
            self._logged = dict(self._watch.counts)
            with quietly():
                for logger in trainer.loggers:
                    logger.log_metrics(dict(self._logged), step=trainer.global_step)


class MonitorCallback(Monitored, Callback):
    """Monitors the training batches of `fit`: the LightningModule, under the names of its checkpoints.

    By default in the steps that the Trainer logs (`log_every_n_steps`). The loggers of the Trainer get the numbers under
    the number that the step has there: `global_step` before the update.
    """

    def __init__(self, monitor: ModuleMonitor | None = None, **options: Unpack[MonitorOptions]) -> None:
        super().__init__(monitor, **options)
        self._updates: int | None = None  # `global_step` when the step began that runs

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        self._updates = None
        loggers = [_LoggerSink(logger) for logger in trainer.loggers if trainer.is_global_zero]
        logged_every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        self._monitoring.begin(pl_module, logged_every or EVERY, loggers)

    def on_train_batch_start(self, trainer: "Trainer", pl_module: "LightningModule", *args: Any) -> None:
        if self._updates is not None:
            self._monitoring.begin_batch()
            return
        self._updates = trainer.global_step
        self._monitoring.begin_step(_step(trainer))
        if self.monitor.is_monitoring() and pl_module.automatic_optimization:
            self._monitoring.during_step(attribute(pl_module, "configure_gradient_clipping")(self._clipping))

    def on_before_optimizer_step(
        self, trainer: "Trainer", pl_module: "LightningModule", optimizer: "torch.optim.Optimizer"
    ) -> None:
        if not pl_module.automatic_optimization:  # or the Trainer clips after this
            self._monitoring.before_update(optimizer)

    def on_train_batch_end(self, trainer: "Trainer", *args: Any, **kwargs: Any) -> None:
        if trainer.global_step == self._updates:
            self._monitoring.end_batch()
        else:
            self._updates = None
            self._monitoring.end_step()

    def on_train_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        self._monitoring.end()

    def on_exception(
        self, trainer: "Trainer", pl_module: "LightningModule", exception: BaseException
    ) -> None:
        self._monitoring.end()

    def _clipping(self, call: Call) -> End:
        return self._clipped

    def _clipped(self, call: Call) -> None:
        if not call.raised:
            self._monitoring.before_update(call.given(0, "optimizer"))


class SnapshotCallback(Snapshotting, Callback):
    """Takes snapshots of `fit`; each rank its own. Step n is the one that `global_step` n goes into."""

    def on_fit_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        self._begin(pl_module, trainer.optimizers)  # before the loader of the training is made

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        if self._snapshots is not None:
            self._snapshots.count_from(_step(trainer))

    def on_validation_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        self._pause(True)

    def on_validation_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        self._pause(False)

    def on_exception(
        self, trainer: "Trainer", pl_module: "LightningModule", exception: BaseException
    ) -> None:
        self._end()

    def on_fit_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        self._end()


class _LoggerSink:
    """A logger of a Trainer, as what takes the numbers of monitored steps."""

    def __init__(self, logger: "Logger") -> None:
        self._logger = logger

    def __str__(self) -> str:
        return type(self._logger).__name__

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._logger.log_metrics(dict(values), step=step)

    def flush(self) -> None:
        """The Trainer does that."""

    close = flush


def _step(trainer: "Trainer") -> int:
    """The number of the update that comes next; of several optimizers, which `global_step` counts each, of their round."""
    if len(trainer.optimizers) < 2:
        return trainer.global_step
    return trainer.fit_loop.epoch_loop._batches_that_stepped  # by which the Trainer logs
