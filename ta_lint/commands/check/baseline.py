"""The baseline of a run: `--baseline` and `--update-baseline`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ta_lint.core.config import Config
from ta_lint.core.errors import UsageError
from ta_lint.core.files import display, encodable
from ta_lint.file import File

if TYPE_CHECKING:
    from ta_lint.core.baseline import Entry
    from ta_lint.core.finding import Finding


class Comparison(NamedTuple):
    """The findings of a run compared with the baseline."""

    findings: "list[Finding]"
    """All of them; those in the baseline are marked."""
    stale: "list[Entry]"
    """The entries without a finding although their file was linted for their rule, or is gone."""
    unjudged: "list[Entry]"
    """The entries without a finding because this run did not check them."""


def accepted(arguments: argparse.Namespace, config: Config) -> "list[Entry]":
    """The entries of the baseline; empty if there is none, or if it is about to be created.

    Raises:
        UsageError: the baseline cannot be read, or is to be updated but not named.
    """
    if config.baseline is None:
        if arguments.update_baseline:
            raise UsageError(
                "--update-baseline: name the file with --baseline FILE, or set [tool.ta] baseline"
            )
        return []
    if arguments.update_baseline and not config.baseline.exists():
        return []
    from ta_lint.core import baseline

    return baseline.load(config.baseline)


def marked(findings: "list[Finding]", accepted: "list[Entry]") -> "tuple[list[Finding], list[Entry]]":
    """The findings, with those in the baseline marked, and the entries without a finding."""
    if not accepted:
        return findings, []
    from ta_lint.core import baseline

    return baseline.marked(findings, accepted)


def compare(findings: "list[Finding]", accepted: "list[Entry]", files: list[File], root: Path) -> Comparison:
    """Compare the findings of files with the baseline."""
    findings, unmatched = marked(findings, accepted)
    config_of = {encodable(file.name): file.config for file in files} if unmatched else {}
    stale: list[Entry] = []
    unjudged: list[Entry] = []
    for entry in unmatched:
        linted = entry.path in config_of and entry.rule in config_of[entry.path].rules
        (stale if linted or not (root / entry.path).exists() else unjudged).append(entry)
    return Comparison(findings, stale, unjudged)


def update(arguments: argparse.Namespace, config: Config, compared: Comparison) -> None:
    """Write the findings as the baseline, keeping the entries that this run did not check."""
    from ta_lint.core import baseline

    assert config.baseline is not None
    count = baseline.save(config.baseline, compared.findings, compared.unjudged)
    if not arguments.quiet:
        print(f"Recorded {count} {'finding' if count == 1 else 'findings'} in {display(config.baseline)}.")


def warn_of_stale(compared: Comparison, config: Config) -> None:
    """Warn if the baseline has entries without a finding."""
    if compared.stale and config.baseline is not None:
        one = len(compared.stale) == 1
        entries = "1 entry" if one else f"{len(compared.stale)} entries"
        print(
            f"ta-lint: {entries} of {display(config.baseline)} {'matches' if one else 'match'} nothing; "
            "--update-baseline drops them",
            file=sys.stderr,
        )
