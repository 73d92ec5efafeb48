"""What a run logs: by the Trainer of transformers, TensorBoard, Weights & Biases and MLflow, once the run has loaded them."""

import sys

from ta_runtime.probes.patching import PutOn, Watch
from ta_runtime.probes.undo import Undo

TRAINERS = "transformers.trainer"
_TENSORBOARD = ("torch.utils.tensorboard.writer", "tensorboardX.writer")
_WANDB = "wandb.sdk.wandb_run"
_MLFLOW = "mlflow.tracking.client"
TRACKERS = (*_TENSORBOARD, _WANDB, _MLFLOW)
"""The modules of what takes the values that a run logs."""


def _method(name: str, kind: str, *modules: str) -> PutOn:
    """A method of a class, in those of these modules that are loaded and have it."""

    def put_on(watch: Watch) -> Undo:
        undo = Undo()
        for module in modules:
            owner = getattr(sys.modules.get(module), kind, None)
            if hasattr(owner, name):
                undo.patch(owner, name, watch)
        return undo

    return put_on


PLACES = {
    "log": (_method("log", "Trainer", TRAINERS),),
    "add_scalar": (_method("add_scalar", "SummaryWriter", *_TENSORBOARD),),
    "add_scalars": (_method("add_scalars", "SummaryWriter", *_TENSORBOARD),),
    # not `log`, which `wandb.log` may be bound to already, and which calls it
    "log_row": (_method("_log", "Run", _WANDB),),
    "log_metric": (_method("log_metric", "MlflowClient", _MLFLOW),),
    "log_batch": (_method("log_batch", "MlflowClient", _MLFLOW),),
}
"""Nothing is watched where it is not loaded yet: who wants to know of it asks again at the next window."""
