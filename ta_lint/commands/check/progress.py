"""A progress bar on a terminal, for runs that take long."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ta_lint.file import File

T = TypeVar("T")

_MANY = 20  # files; fewer are done before a bar helps
_PATIENCE = 1.0  # seconds until the bar appears


def with_progress(results: Iterator[T], files: "list[File]", file_of: "Callable[[T], File]") -> Iterator[T]:
    """Yield the results while showing a bar that disappears at the end.

    It counts bytes: the largest files come first, so an estimate from the number of files would be far too long.
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
