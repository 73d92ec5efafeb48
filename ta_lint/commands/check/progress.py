"""A bar on a terminal, while a run is long enough to wonder."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ta_lint.file import File

T = TypeVar("T")

_MANY = 20  # files; fewer are done before anyone wonders
_PATIENCE = 1.0  # seconds until the bar appears


def with_progress(results: Iterator[T], files: "list[File]", file_of: "Callable[[T], File]") -> Iterator[T]:
    """The results, with a bar that leaves no trace.

    It counts bytes: the largest files come first, and a count of files would promise hours.
    """
    if len(files) < _MANY or not sys.stderr.isatty():
        yield from results
        return
    began, done = time.monotonic(), 0
    for result in results:
        yield result
        done += file_of(result).size
        if time.monotonic() - began > _PATIENCE:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Linting", total=sum(file.size for file in files), completed=done)
        for result in results:
            yield result
            progress.advance(bar, file_of(result).size)
