"""Counting the work of linting generated sources: function calls, C's included, which are equal on every machine."""

import cProfile
from collections.abc import Callable
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

from shapes import Files

from ta_lint.core import collector
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.engine import lint_file
from ta_lint.file import File
from ta_lint.runner import start_thread


class Work(NamedTuple):
    """What it takes to lint some files."""

    calls: int
    size: int
    """The bytes of the files."""
    findings: list[Finding]


def on_deep_stack(task: Callable[[], Any]) -> Any:
    """What a task returns in a thread like those of the linter, from which the garbage collector stays away."""
    found: list[Any] = []

    def work() -> None:
        with collector.paused():
            found.append(task())

    start_thread(work).join()
    return found.pop()


def lint(files: Files, folder: Path, *, gated: bool = True) -> list[Finding]:
    """The findings of files in a new folder, with all rules."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    config = Configs(Options(select=["ALL"], isolated=True), folder).root_config
    return [found for name in files for found in lint_file(File(folder / name, name, config, gated=gated))]


def work(files: Files, folder: Path, *, gated: bool = True) -> Work:
    """The calls that linting these files makes."""

    def counted() -> tuple[int, list[Finding]]:
        profile = cProfile.Profile()
        findings = profile.runcall(lint, files, folder, gated=gated)
        return sum(entry.callcount for entry in profile.getstats()), findings

    calls, findings = on_deep_stack(counted)
    return Work(calls, sum(map(len, files.values())), findings)


def exponents(works: list[Work]) -> list[float]:
    """By which power the calls grow from each size to the next, twice as large or, in bytes, larger still: 1 is in proportion."""
    return [
        log2(after.calls / before.calls) / max(1, log2(after.size / before.size))
        for before, after in pairwise(works)
    ]
