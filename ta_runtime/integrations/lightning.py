"""A callback for Lightning's Trainer, also under its old name `pytorch_lightning`."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

from ta_runtime.integrations import needs
from ta_runtime.integrations.watch import Options, Watching, quietly

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
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

    def __init__(self, **options: Unpack[Options]) -> None:
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
