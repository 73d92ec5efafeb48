"""Lints the files of a run through the cache."""

import argparse
from functools import cache as once
from typing import TYPE_CHECKING

from ta_lint.commands.check.files import Chosen
from ta_lint.commands.check.outcome import Outcome, in_order
from ta_lint.commands.check.settings import Settings
from ta_lint.commands.messages import warn
from ta_lint.file import may_hold_findings
from ta_lint.project.project import project_of

if TYPE_CHECKING:
    from ta_lint.cache import Cache


def lint(arguments: argparse.Namespace, settings: Settings, chosen: Chosen) -> Outcome:
    """Lint the files without fixing them."""
    opened = once(lambda: open_cache(arguments, settings) if chosen.given is None else None)
    project_of.kept = lambda root: cache.outlines(root) if (cache := opened()) is not None else {}
    if not may_hold_findings(chosen.files):
        if opened.cache_info().currsize and (cache := opened()) is not None:
            cache.close()  # the project is large
        return Outcome([], chosen.given, looked=False)
    from ta_lint.commands.check.progress import with_progress
    from ta_lint.runner import lint_files

    cache = opened()
    linted = lint_files(chosen.files, arguments.jobs, cache)
    findings = in_order(with_progress(linted, chosen.files, lambda result: result[0]))
    if cache is not None and not arguments.quiet:
        warn_of_cache(cache)
    return Outcome(findings, chosen.given)


def open_cache(arguments: argparse.Namespace, settings: Settings) -> "Cache | None":
    """The cache of the project; None if every file must be linted."""
    if arguments.no_cache or arguments.no_gates:
        return None
    from ta_lint.cache import Cache, cache_folder

    return Cache(cache_folder(settings.config, settings.root), settings.root)


def warn_of_cache(cache: "Cache") -> None:
    """Warn if the cache cannot be written."""
    if cache.problem:
        warn(
            "the cache cannot be written, so each run lints every file: "
            f"{cache.problem}, --no-cache does without"
        )
