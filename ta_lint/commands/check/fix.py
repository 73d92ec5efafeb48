"""`--fix`: applies the fixes of a run and writes the files."""

import argparse
import sys
from pathlib import Path

from ta_lint.commands import INTERRUPTED
from ta_lint.commands.check.files import Chosen
from ta_lint.commands.check.outcome import Outcome, in_order
from ta_lint.commands.check.progress import with_progress
from ta_lint.commands.messages import complain, warn
from ta_lint.core.baseline import Entry
from ta_lint.core.config import project_root
from ta_lint.core.errors import UsageError
from ta_lint.core.files import display, is_within
from ta_lint.file import File
from ta_lint.fixing import Fixed, save
from ta_lint.runner import fix_files, lint_files


def fixed(arguments: argparse.Namespace, files: list[File], accepted: list[Entry]) -> list[Fixed]:
    """Apply the fixes that the settings allow, in memory."""
    fingerprints = frozenset(entry.fingerprint for entry in accepted)
    fixing = fix_files(files, fingerprints, arguments.jobs)
    results = list(with_progress(fixing, files, lambda result: result.file))
    for complaint in (complaint for result in results for complaint in result.complaints):
        warn(complaint)
    return results


def write(results: list[Fixed], chosen: Chosen, root: Path) -> Outcome:
    """Write the fixed files, or fixed standard input to standard output."""
    if chosen.given is None:
        return _into_files(results, root)
    return _to_standard_output(results, chosen.given)


def _into_files(results: list[Fixed], root: Path) -> Outcome:
    """Write each changed file completely or not at all. A file that cannot be written is linted as it is on disk."""
    written: list[Fixed] = []
    unwritten: list[File] = []
    try:
        for result in sorted(results, key=lambda result: result.file.name):
            if not result.changes:
                continue
            try:
                _save(result, root)
            except UsageError as error:
                complain(str(error))
                unwritten.append(result.file)
            else:
                written.append(result)
    except KeyboardInterrupt:
        print(f"ta-lint: interrupted, files fixed before: {len(written)}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    names = {file.name for file in unwritten}
    linted = [(result.file, result.findings) for result in results if result.file.name not in names]
    findings = in_order([*linted, *lint_files(unwritten, 1)])
    fixes = {result.file.name: result.rules for result in written}
    count = sum(result.count for result in written)
    return Outcome(findings, None, count, fixes, bool(unwritten))


def _save(result: Fixed, root: Path) -> None:
    """Write a changed file.

    A link out of the project is not followed, as the author of the project chose its target.

    Raises:
        UsageError: the file cannot be written.
    """
    path = result.file.path
    if not is_within(path, root, project_root(path.parent)):
        raise UsageError(
            f"{display(path)} is a link out of the project; name {path.resolve()} to fix that file"
        )
    save(result)


def _to_standard_output(results: list[Fixed], given: bytes) -> Outcome:
    """Write standard input after its fixes; unchanged if it is excluded."""
    after = results[0].after if results else given
    sys.stdout.flush()
    sys.stdout.buffer.write(after)
    sys.stdout.buffer.flush()
    findings = in_order((result.file, result.findings) for result in results)
    count = sum(result.count for result in results)
    fixes = {result.file.name: result.rules for result in results if result.changes}
    return Outcome(findings, after, count, fixes)
