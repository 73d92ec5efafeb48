"""Numbers as scalars of TensorBoard."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ta_runtime import ranks
from ta_runtime.extras import needs

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_SECONDS = 30  # what a killed job loses


class TensorBoard:
    """Scalars under their keys, which TensorBoard groups by what is before the first `/`. It keeps them as float32.

    Args:
        log: the folder, of rank 1 its subfolder `rank1`; or a writer in use, which is not closed.

    Raises:
        UsageError: tensorboard is missing.
    """

    def __init__(self, log: "str | Path | SummaryWriter") -> None:
        with needs("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self._own = isinstance(log, str | Path)
        if isinstance(log, str | Path):
            folder = Path(log) / f"rank{ranks.rank()}" if ranks.rank() else Path(log)
            log = SummaryWriter(folder, flush_secs=_SECONDS)
        self.writer = log

    def write(self, step: int, values: Mapping[str, float]) -> None:
        # one event for all of them: `add_scalar` makes an array and an event of each, and takes six times as long
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [Summary.Value(tag=key, simple_value=value) for key, value in values.items()]
        file: Any = self.writer.file_writer
        file.add_summary(Summary(value=scalars), step)

    def tell(self, step: int, name: str, text: str) -> None:
        """Write a text, which TensorBoard reads as Markdown."""
        self.writer.add_text(name, text, step)

    def flush(self) -> None:
        self.writer.flush()

    def close(self) -> None:
        if self._own:
            self.writer.close()
        else:
            self.flush()

    def __str__(self) -> str:
        return f"TensorBoard {self.writer.log_dir}"
