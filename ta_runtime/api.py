"""The process-wide audit: `enable()` and nothing else to change."""

import atexit
import contextlib
import multiprocessing.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ta_lint.core.finding import Finding
from ta_lint.core.terminal import standard_error
from ta_runtime import reports
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.children import Children, Handover
from ta_runtime.reports import ReportFile
from ta_runtime.settings import OnFinding, Settings, resolve
from ta_runtime.storage import Place

REPORT = "ta-runtime.sarif"
"""Where the report goes unless the user says otherwise."""

_audit: Audit | None = None
_command = False
"""Whether `ta-runtime run` watches: it began before the script, and ends after it."""


@dataclass(frozen=True)
class Inherited:
    """How the audit of a process goes on in those that it starts. What it records stays its own."""

    settings: Settings
    files: tuple[tuple[Place, str], ...]
    """Its reports, with their formats."""
    command: bool
    folder: Path
    """Where they hand over what they saw."""

    def __call__(self) -> Callable[[int], object]:
        """Begin, unless the script has begun here itself; returns what ends it with the exit status of the process."""
        audit = running()
        if audit is not None and not self.command:
            audit.handover = Handover(self.folder)
            return lambda status: None
        files = [ReportFile(path, form, apart=True) for path, form in self.files]
        audit = Audit(self.settings, files=files, handover=Handover(self.folder))
        begin(audit, command=self.command)
        return lambda status: end(status=status) if _audit is audit else None


def enable(
    *,
    overhead: float | None = None,
    every_n_steps: int | None = None,
    gradients_every_n_steps: int | None = None,
    schedule: str | Path | None = None,
    save_schedule: str | Path | None = None,
    rules: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    output: str | Path | None = REPORT,
    fail_level: str | None = None,
    on_finding: OnFinding | None = None,
    baseline: str | Path | None = None,
    compiled: Literal["skip", "eager"] = "skip",
    live: bool = True,
    lint: bool = False,
    record: str | Path | None = None,
    snapshots: str | None = None,
    send: bool = False,
    invariants: str | Path | Iterable[str | Path] | None = None,
    invariants_every_n_steps: int = 10,
    preflight: bool = False,
) -> None:
    """Watch every training step of this process from here on; call it before the model is built.

    Args:
        overhead: the share of the time of the run that looking may take, by default 0.03. The first steps are audited in
            full: activations, inputs, losses, updates; then as many as that allows, in bursts at random offsets.
        every_n_steps: audit the first step and then each n-th instead, whatever it costs, so that two runs are looked at in
            the same steps. 0: none. By default 100 for a run that is
            recorded, as runs are compared step by step, and 1000 for several ranks, which look at the same steps.
        gradients_every_n_steps: between audits, look at the gradients and the loss of each n-th step: two operations
            on the device, and no waiting for it. 0: never. By default of each step that the overhead allows it for, and of
            each with `every_n_steps`, with `record` and of several ranks.
        schedule: look at the steps that another run looked at, by the file that it wrote, and at no others.
        save_schedule: where to write, at the end, which steps this run looked at.
        rules: what to look for instead of the default rules and `[tool.ta] select`: ids, prefixes, names, tags.
        ignore: what not to look for.
        output: the report, rewritten whole at each new finding, so that a job that is killed has its report up to the
            step before: SARIF for `.sarif`, JSON for `.json`, else text. None: no file. In a distributed run, rank 1
            writes `ta-runtime.rank1.sarif`, and rank 0 gathers all into its own at the end.
        fail_level: `note`, `warning` or `error`: stop the run by `AuditFailed` at the first such finding, or a worse.
        on_finding: called with each new `Finding`.
        baseline: findings that were accepted, as `ta-runtime run --update-baseline` writes them; they do not count.
        compiled: models under `torch.compile` hide their layers. `skip` says so in the report; `eager` runs audited
            steps uncompiled, which differs in rounding and in the random numbers of dropout.
        live: print a line to standard error for each new finding, and a table at the end.
        lint: lint the script now, with the modules of the project that it imports, and say of each suspicion whether
            the run confirms or refutes it; the report is then of both observers.
        record: a folder, which must hold no run yet, for the numbers of each step that is looked at, the findings and
            the snapshots: what `ta-runtime report` shows and `ta-runtime diff` compares. Of a job that is killed, the
            last 30 seconds are lost, or the last hundredth of its time if that is more.
        snapshots: when to take the digests of all tensors and settings into that folder, for `ta-runtime diff`, such as
            "first 3, every 1000". None: never.
        send: send loss, gradient norm, learning rate, time and the findings to the runs of Weights & Biases and MLflow and
            the writer of TensorBoard that the script has open, as `ta/...`. Rank 0 does; a tracker that fails gets no more.
        invariants: a file of invariants, or several, as `ta-runtime infer` writes them: what breaks one is TA510.
        invariants_every_n_steps: look into the first ten steps and each n-th: modules, functions of torch, and what
            tensors hold. What the loop calls is looked at in each step.
        preflight: before the first step, show on standard error what enters the model, look further into the loaders, and
            try the model on copies of its weights, as `ta-runtime preflight` does; then go on to train.

    Raises:
        UsageError: an argument or the project's `[tool.ta]` is wrong, or the report or the run cannot be written there.
        RuntimeError: it is enabled already.
    """
    audit = running()
    is_inherited = audit is not None and audit.handover is not None
    if _command:
        if not is_inherited:  # else the parent has said so
            reports.error_line("`ta-runtime run` watches already; the arguments of `enable()` are not used")
        return
    if audit is not None and not is_inherited:
        raise RuntimeError("ta_runtime is enabled already; call ta_runtime.disable() first")
    settings = resolve(
        overhead=overhead,
        every_n_steps=every_n_steps,
        gradients_every_n_steps=gradients_every_n_steps,
        schedule=schedule,
        save_schedule=save_schedule,
        rules=rules,
        ignore=ignore,
        output=output,
        fail_level=fail_level,
        on_finding=on_finding,
        baseline=baseline,
        compiled=compiled,
        live=live,
        lint=lint,
        record=record,
        snapshots=snapshots,
        send=send,
        invariants=invariants,
        invariants_every_n_steps=invariants_every_n_steps,
        preflight=preflight,
    )
    audit = Audit(settings)
    audit.lint()
    begin(audit)


class Findings(list[Finding]):
    """Findings, of which a notebook shows how many there are: what they are was printed."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("1 finding" if len(self) == 1 else f"{len(self)} findings")


def disable() -> list[Finding]:
    """Let go of torch, write the report, and return the findings; nothing happens if it is not enabled.

    At the end of the script it happens by itself, also after an exception.
    """
    audit = running()
    if audit is None:
        return Findings()
    return Findings(audit.findings if _command else end())


def findings() -> list[Finding]:
    """The findings so far, in order of place; none if it is not enabled."""
    audit = running()
    return Findings(audit.findings if audit is not None else ())


def log(values: Mapping[str, object] | None = None, /, *, step: int | None = None, **named: object) -> None:
    """Record values of your own in the run's folder, for `ta-runtime report`: `log(accuracy=0.9)`, `log({"val/loss": 0.3})`.

    Nothing happens where no run is recorded. A tensor of one element is read as `item()` reads it; what is no number is
    left out.

    Args:
        values: by name; more can be given as keywords.
        step: of the optimizer, from 0; by default the last one that was made.
    """
    if (audit := running()) is not None:
        audit.log({**(values or {}), **named}, step)


def running() -> Audit | None:
    """The audit of this process, None if there is none; one that a parent began is not of this process."""
    return _audit if _audit is not None and _audit.mine else None


def begin(audit: Audit, *, command: bool = False) -> None:
    """Make an audit that of this process, until `end` or the end of the process."""
    global _audit, _command
    is_inherited = audit.handover is not None
    if _audit is not None:  # a copy, from before a fork; or of two one is inherited, and one the script's own
        if _audit.mine and _audit.handover is not None:
            audit.handover = Handover(_audit.handover.folder)
        _audit.let_go()
    _audit, _command = audit, command
    audit.children = Children(
        partial(_inherited, audit, command), audit.handover.folder if audit.handover is not None else None
    )
    audit.start()
    if audit.settings.preflight and not reports.is_child():
        from ta_runtime.preflight import flight

        flight.Preflight(audit, flight.shown_in(standard_error(), audit)).attach()
    if not command or is_inherited:
        atexit.register(_at_exit, getattr(sys, "last_value", None))
    if not is_inherited and reports.is_child():  # one that was forked ends without `atexit`
        multiprocessing.util.Finalize(None, _at_exit, (None,), exitpriority=0)


def _inherited(audit: Audit, command: bool, folder: Path) -> Inherited:
    settings = replace(
        audit.settings,
        lint=False,
        on_finding=None,
        record=None,
        snapshots=None,
        save_schedule=None,
        send=False,
        preflight=False,
    )
    files = tuple(
        (file.named, file.form) for file in audit.files if file.named.parent != audit.settings.record
    )
    return Inherited(settings, files, command, folder)


def end(error: BaseException | None = None, status: int = 0) -> list[Finding]:
    """End the audit of this process and print the table; `error` is what ended the run, or the `status` of the process."""
    global _audit, _command
    assert _audit is not None
    audit, _audit, _command = _audit, None, False
    atexit.unregister(_at_exit)
    audit.stop(error, status)
    if audit.settings.live and audit.handover is None:
        audit.summarise()
    return audit.findings


def leave(audit: Audit) -> None:
    """End an audit that a command began before the run is over, without judging the run as a whole."""
    global _audit, _command
    if _audit is audit:
        _audit, _command = None, False
    audit.leave()


def _at_exit(last: BaseException | None) -> None:
    """The script is over. Python keeps an exception that ended it; `last` is one of before."""
    if running() is not None:
        error = getattr(sys, "last_value", None)
        end(error if error is not last and not hasattr(sys, "ps1") else None)
        if error is not last and isinstance(error, KeyboardInterrupt):
            _interrupted_again()


def _interrupted_again() -> None:
    """Python ends by the signal if a Ctrl-C ended what it ran last, and what we import runs text, as every dataclass does."""
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102
