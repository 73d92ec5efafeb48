"""The baseline: findings that were accepted once, so they are marked and no longer count."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from ta_lint.core.errors import Unreadable, UsageError, oneline
from ta_lint.core.files import encodable, write_atomically
from ta_lint.core.finding import Finding
from ta_lint.core.reading import read


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True, order=True):
    """One accepted finding. Only the fingerprint is compared; the rest helps people who read diffs."""

    path: str
    rule: str
    fingerprint: str
    message: str


class _BaselineFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    version: int
    findings: list[Entry]


def load(path: Path) -> list[Entry]:
    """The entries of a baseline file.

    Raises:
        UsageError: the file is missing or not a baseline.
    """
    try:
        file = msgspec.json.decode(read(path), type=_BaselineFile)
    except Unreadable as error:
        if not os.path.lexists(path):
            raise UsageError(f"baseline {path} does not exist; write it with --update-baseline") from error
        raise UsageError(f"baseline {path}: {error.reason}") from error
    except msgspec.DecodeError as error:
        remedy = "restore it from version control, or delete it and write it anew with --update-baseline"
        raise UsageError(f"baseline {path} is corrupt ({oneline(error)}); {remedy}") from error
    if file.version != 1:
        raise UsageError(f"baseline {path} has version {file.version}; this ta-lint reads version 1")
    return file.findings


def marked(findings: Iterable[Finding], entries: list[Entry]) -> tuple[list[Finding], list[Entry]]:
    """The findings, with those in the baseline marked, and the entries that no longer match a finding."""
    known = {entry.fingerprint for entry in entries}
    result = [replace(finding, baselined=finding.fingerprint in known) for finding in findings]
    present = {finding.fingerprint for finding in result}
    return result, [entry for entry in entries if entry.fingerprint not in present]


def save(path: Path, findings: Iterable[Finding], kept: Iterable[Entry] = ()) -> int:
    """Write the unsuppressed findings and the `kept` entries as the new baseline; return the number of entries.

    Raises:
        UsageError: the file cannot be written.
    """
    entries = {
        Entry(encodable(finding.site.path), finding.rule, finding.fingerprint, finding.message)
        for finding in findings
        if finding.suppression is None
    }
    entries.update(kept)
    text = msgspec.json.format(msgspec.json.encode(_BaselineFile(1, sorted(entries))), indent=2).decode()
    write_atomically(path, text + "\n")
    return len(entries)
