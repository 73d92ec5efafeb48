"""`--add-noqa`: suppresses the findings of a run by comments."""

import argparse

from ta_lint.commands import CLEAN, ERROR
from ta_lint.commands.check.files import Chosen
from ta_lint.commands.check.fix import write
from ta_lint.commands.check.progress import with_progress
from ta_lint.commands.check.settings import Settings
from ta_lint.commands.messages import warn
from ta_lint.core.baseline import Entry
from ta_lint.runner import silence_files


def add(arguments: argparse.Namespace, settings: Settings, chosen: Chosen, accepted: list[Entry]) -> int:
    """Write a comment against each finding that the text report shows; return the exit status."""
    fingerprints = frozenset(entry.fingerprint for entry in accepted)
    silencing = silence_files(chosen.files, fingerprints, arguments.jobs, notes=settings.config.show_notes)
    results = list(with_progress(silencing, chosen.files, lambda result: result.file))
    for complaint in (complaint for result in results for complaint in result.complaints):
        warn(complaint)
    outcome = write(results, chosen, settings.root)
    if not arguments.quiet:
        added = "1 suppression" if outcome.fixed == 1 else f"{outcome.fixed} suppressions"
        files = "1 file" if len(outcome.fixes) == 1 else f"{len(outcome.fixes)} files"
        print(f"Added {added} in {files}.")
    return ERROR if outcome.unwritten else CLEAN
