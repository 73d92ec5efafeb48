"""The files that sinks write."""

from pathlib import Path

from ta_lint.core.errors import UsageError, oneline
from ta_runtime import ranks


def of_rank(path: str | Path) -> Path:
    """The file of this rank, in a folder that is there.

    Raises:
        UsageError: the folder cannot be made.
    """
    path = Path(path).absolute()
    if rank := ranks.rank():
        path = path.with_name(f"{path.stem}.rank{rank}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: {error.strerror or oneline(error)}") from error
    return path
