"""A callback for the Trainer of Lightning, also under its old name `pytorch_lightning`."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

from ta_runtime.integrations import needs
from ta_runtime.integrations.watch import Options, Watch, quietly

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer

    _BASES = Callback
else:

    def _bases() -> tuple[type, ...]:
        """The `Callback` of each Lightning that is in use: the two names are two packages, with classes of their own."""
        names = ("lightning.pytorch", "pytorch_lightning")
