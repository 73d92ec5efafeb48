"""Where numbers go while a run goes on: one module for each kind, loaded with its library when it is asked for.

Of a distributed run each rank writes a file of its own: rank 1 of `x.csv` has `x.rank1.csv`. To Weights & Biases and
MLflow rank 0 alone sends, unless another is given a run.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ta_runtime.monitor.sinks.csv import CSV
    from ta_runtime.monitor.sinks.hdf5 import HDF5
    from ta_runtime.monitor.sinks.mlflow import MLflow
    from ta_runtime.monitor.sinks.parquet import Parquet
    from ta_runtime.monitor.sinks.tensorboard import TensorBoard
    from ta_runtime.monitor.sinks.wandb import Wandb

__all__ = ["CSV", "HDF5", "MLflow", "Parquet", "Sink", "TensorBoard", "Wandb"]


class Sink(Protocol):
    """What takes the numbers of each monitored step. It may raise: it then gets no more."""

    def write(self, step: int, values: Mapping[str, float]) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
