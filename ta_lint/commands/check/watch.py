"""`--watch`: lints changed files again and shows the current findings."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ta_lint.commands import CLEAN
from ta_lint.commands.check import baseline, report
from ta_lint.commands.check.changes import changes
from ta_lint.commands.check.files import warn_of_no_files
from ta_lint.commands.check.lint import open_cache, warn_of_cache
from ta_lint.commands.check.outcome import in_order
from ta_lint.commands.check.progress import with_progress
from ta_lint.commands.check.settings import Settings, read_settings, warn_of_overlooked, working_folder
from ta_lint.commands.check.watched_files import Reading, WatchedFiles
from ta_lint.commands.messages import complain
from ta_lint.core.collector import resume
from ta_lint.core.report import remedies, summary
from ta_lint.core.terminal import wants_color
from ta_lint.file import File
from ta_lint.runner import Result, lint_files

if TYPE_CHECKING:
    from ta_lint.cache import Cache

_CLEAR = "\x1b[H\x1b[2J"


def run(arguments: argparse.Namespace) -> int:
    """Lint changed files again until Ctrl-C, which is the normal end, so the status is 0."""
    folder = working_folder()
    cache: Cache | None = None

    def read() -> Reading:
        settings = read_settings(arguments, folder)
        accepted = baseline.accepted(arguments, settings.config)
        sources = [path for path in (arguments.config, settings.config.baseline) if path is not None]
        return Reading(settings, accepted, sources)

    def lint(files: list[File], settings: Settings) -> Iterator[Result]:
        nonlocal cache
        cache = open_cache(arguments, settings)
        linted = lint_files(files, arguments.jobs, cache)
        return with_progress(linted, files, lambda result: result[0])

    try:
        files = WatchedFiles(arguments.paths or [Path()], read, lint)
        resume()
        follow(files, lambda: _show(arguments, files, cache))
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            print()  # the prompt then begins on a new line
    return CLEAN


def follow(files: WatchedFiles, show: Callable[[], None]) -> None:
    """Lint all files, then changed ones until Ctrl-C; call `show` whenever there is something new.

    Raises:
        UsageError: the operating system does not allow watching so many folders.
        KeyboardInterrupt: the user pressed Ctrl-C, the only way to end it.
    """
    seen = changes(files)
    next(seen)  # from here on no change is missed
    files.refresh()
    show()
    for reread in seen:
        if files.refresh(reread):
            show()


def _show(arguments: argparse.Namespace, files: WatchedFiles, cache: "Cache | None") -> None:
    """Print the current findings: on a terminal after clearing the screen, otherwise below the previous ones."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    settings = files.reading.settings
    found = in_order(files.results)
    compared = baseline.compare(found, files.reading.accepted, files.files, settings.root)
    fixes = report.fixes_of(files.files)
    color = wants_color(sys.stdout)
    text = report.rendered(arguments, settings, compared.findings, fixes, color=color)
    print(f"{_CLEAR if terminal else ''}{text}", end="", flush=True)
    warn_of_overlooked(settings)
    if not files.files:
        warn_of_no_files()
    if files.trouble:
        complain(f"{files.trouble}; what held before stays")
    if not arguments.quiet:
        if cache is not None:
            warn_of_cache(cache)
        baseline.warn_of_stale(compared, settings.config)
        now = time.strftime("%H:%M:%S")
        counts = summary(compared.findings, report.skipped(files.files)).strip()
        aside = report.hidden_notes(arguments, settings, compared.findings)
        print(
            f"{remedies(compared.findings, fixes)}{aside}[{now}] {counts} Watching for file changes.",
            flush=True,
        )
