"""What `run` and `audit` have in common: their options, the audit they make, and how it is reported."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ta_lint.core.errors import UsageError
from ta_runtime.commands import CLEAN, ERROR, FINDINGS
from ta_runtime.extras import need

if TYPE_CHECKING:
    import torch

    from ta_runtime.audit.audit import Audit
    from ta_runtime.settings import Settings

FORMATS = ("text", "concise", "json", "sarif", "github")
DOCUMENTS = ("json", "sarif")  # formats that a program reads: nothing else may stand on standard output

KEYS = ("--select", "--ignore", "--baseline")  # as settings.resolve calls them in its complaints

_SELECTORS = """\
RULES: an id (TA102), a prefix (TA1), a name (exploding-gradient), or a tag
(stability); separate several by commas."""


def add_options(parser: argparse.ArgumentParser, *, script: bool) -> None:
    """Add the options of all that audit. `script`: a script runs meanwhile, and its own exit status is what counts."""
    rules = parser.add_argument_group("rules", _SELECTORS)
    rules.add_argument(
        "--select", type=_listed, action="extend", metavar="RULES", help="run only these rules"
    )
    rules.add_argument(
        "--extend-select", type=_listed, action="extend", metavar="RULES", help="also run these"
    )
    rules.add_argument("--ignore", type=_listed, action="extend", metavar="RULES", help="do not run these")
    output = parser.add_argument_group("output")
    where = (
        "json and sarif go to standard output, and the output of the script to standard error"
        if script
        else "text"
    )
    by_default = f"default: text; {where}" if script else "default: text"
    output.add_argument(
        "--format", "-f", type=_form, choices=FORMATS, help=f"format of the report ({by_default})"
    )
    output.add_argument("--output", "-o", type=Path, metavar="FILE",
                        help="write the report to a file; .sarif and .json choose the format")  # fmt: skip
    output.add_argument("--quiet", "-q", action="store_true",
                        help="print no findings and no table" if script else "print only findings")  # fmt: skip
    output.add_argument("--fail-level", type=str.lower, choices=("note", "warning", "error", "info", "warn", "fatal"),
                        metavar="{note,warning,error}",
                        help="lowest severity that makes the exit status 1"
                        + (" (default: none)" if script else " (default: warning)"))  # fmt: skip
    if not script:
        output.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    known = parser.add_argument_group("baseline")
    known.add_argument(
        "--baseline", type=Path, metavar="FILE", help="do not count the findings recorded in FILE"
    )
    known.add_argument(
        "--update-baseline", action="store_true", help="record the current findings in the baseline"
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument("--config", type=Path, metavar="FILE", help="use the settings of this file")
    settings.add_argument("--isolated", action="store_true", help="read no configuration file")


def _listed(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names:
        raise argparse.ArgumentTypeError("no rule is named")
    return names


def _form(text: str) -> str:
    """A format by its name, or by that of the same in torch-audit."""
    return {"rich": "text"}.get(text.lower(), text.lower())


def need_torch() -> None:
    """Find out whether torch is installed, without loading it.

    Raises:
        UsageError: it is not.
    """
    need("torch", "runtime")


def settings(arguments: argparse.Namespace, **steps: object) -> "Settings":
    """The settings that the options give, and those of `steps`, which only one command has.

    Raises:
        UsageError: they are wrong; the text names the option.
    """
    from ta_runtime.settings import resolve

    resolved = resolve(
        rules=arguments.select,
        extend_select=arguments.extend_select or (),
        ignore=arguments.ignore or (),
        baseline=arguments.baseline,
        config_file=arguments.config,
        isolated=arguments.isolated,
        keys=KEYS,
        **steps,  # type: ignore[arg-type]
    )
    if arguments.update_baseline and resolved.baseline is None:
        raise UsageError("--update-baseline: name the file with --baseline FILE, or set [tool.ta] baseline")
    return resolved


def made(
    arguments: argparse.Namespace,
    settings: "Settings",
    script: str = "",
    optimizers: "list[torch.optim.Optimizer] | None" = None,
) -> "Audit":
    """The audit that the options ask for; see `Audit`."""
    from ta_runtime.audit.audit import Audit
    from ta_runtime.reports import ReportFile

    files = [ReportFile(arguments.output, arguments.format)] if arguments.output is not None else []
    recording = arguments.update_baseline
    return Audit(settings, optimizers=optimizers, files=files, recording=recording, place=script)


def form(arguments: argparse.Namespace) -> str:
    """What to report as, one of `FORMATS`."""
    chosen: str = arguments.format or "text"
    return chosen


@contextlib.contextmanager
def own_stdout(arguments: argparse.Namespace, otherwise: TextIO) -> Iterator[TextIO]:
    """Where the report goes: standard output if a program is to read it, and then nothing else may go there; else to
    `otherwise`.

    The script's output, and that of the processes it starts, then goes to standard error, for good: what it prints at
    exit as well.
    """
    if arguments.output is not None or form(arguments) not in DOCUMENTS:
        yield otherwise
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as stream:
        os.dup2(2, 1)
        yield stream


def report(arguments: argparse.Namespace, audit: "Audit", stream: TextIO, *, told: bool = False) -> int:
    """Record the baseline, or print what was asked for; returns an exit status, without regard to findings.

    `told` says that the findings are on the screen already.
    """
    from ta_lint.core.files import display
    from ta_lint.core.terminal import wants_color
    from ta_runtime.reports import error_line

    complaints = [file.complaint for file in audit.files]
    if audit.recorder is not None:
        complaints.append(audit.recorder.writer.complaint)
    written = CLEAN if complaints.count(None) == len(complaints) else ERROR
    known = audit.settings.baseline
    if arguments.update_baseline:
        assert known is not None
        count = audit.record()
        if not arguments.quiet:
            error_line(f"recorded {'1 finding' if count == 1 else f'{count} findings'} in {display(known)}")
        return written
    if arguments.output is None and not told:
        stream.write(audit.rendered(form(arguments), color=wants_color(stream), brief=arguments.quiet))
        stream.flush()
    if known is not None and not arguments.quiet and (stale := audit.stale):
        entries, match, them = ("1 entry", "matches", "it")
        if len(stale) > 1:
            entries, match, them = (f"{len(stale)} entries", "match", "them")
        error_line(
            f"{entries} of {display(known)} {match} nothing in this run; --update-baseline drops {them}"
        )
    return written


def status(arguments: argparse.Namespace, audit: "Audit", report: int) -> int:
    """The exit status of a command that runs no script, when `report` was that of reporting."""
    if report != CLEAN or arguments.exit_zero or arguments.update_baseline:
        return report
    return FINDINGS if failing(arguments, audit) else CLEAN


def failing(arguments: argparse.Namespace, audit: "Audit") -> bool:
    """Whether there is a finding that is to give the exit status 1."""
    from ta_runtime.settings import severity

    level = arguments.fail_level
    return audit.failing(severity(level) if level is not None else audit.settings.config.fail_level)
