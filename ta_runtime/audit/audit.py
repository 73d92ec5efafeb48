"""An audit: a session, and what becomes of its findings: live lines, callbacks, report files, the end of the run."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import nn

from ta_lint.core import baseline
from ta_lint.core.baseline import Entry
from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import oneline
from ta_lint.core.finding import Finding, Severity
from ta_lint.core.terminal import standard_error
from ta_lint.core.verdict import joined
from ta_runtime import checks, ranks, reports
from ta_runtime.audit import children
from ta_runtime.audit.children import Children, Handover
from ta_runtime.audit.findings import findings, inspected
from ta_runtime.audit.session import AuditFailed, Session, script
from ta_runtime.coverage import CoverageText, told
from ta_runtime.faults import keep
from ta_runtime.incidents import Incident, Inspection
from ta_runtime.observers.forwards import MOST_PASSES
from ta_runtime.observers.logged import numbers
from ta_runtime.observers.window import Window
from ta_runtime.probes import hub
from ta_runtime.probes.patching import Call
from ta_runtime.probes.undo import Undo
from ta_runtime.reports import ReportFile
from ta_runtime.settings import VIOLATED, Settings
from ta_runtime.storage import shown

if TYPE_CHECKING:
    from ta_runtime.audit.linting import Linting
    from ta_runtime.audit.recorder import Recorder
    from ta_runtime.audit.sending import Sending
    from ta_runtime.invariants.live import Live
    from ta_runtime.snapshot import Snapshots

_HURRY = timedelta(milliseconds=100)
"""How long rank 0 waits for the others after an exception of its own: they wait for it in a collective."""


class Audit:
    """One session with its reports. `enable`, `Auditor` and the command each hold one.

    `files` are the reports to keep up to date, by default the one that `settings.output` names. With `recording` the
    baseline need not exist yet. `place` is the file that stands in for a place outside the user's code, by default the
    script that runs. `handover` is where a process hands what it saw over to the one that started it.

    Raises:
        UsageError: a report cannot be written where it should be, or the baseline is missing or no baseline.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        models: Iterable[nn.Module] = (),
        optimizers: Iterable[torch.optim.Optimizer] | None = None,
        files: Sequence[ReportFile] | None = None,
        recording: bool = False,
        place: str = "",
        handover: Handover | None = None,
    ) -> None:
        self.settings = settings
        self.handover = handover
        self.children: Children | None = None
        """Who follows the processes that the script starts, if anyone does."""
        given = list(models)
        optimizers = list(optimizers) if optimizers is not None else None
        if files is None:
            files = [ReportFile(settings.output)] if settings.output is not None else []
        self.files = list(files)
        known = settings.baseline
        self.accepted: list[Entry] = []
        """The entries of the baseline."""
        if known is not None and (known.exists() or not recording):
            self.accepted = baseline.load(known)
        self.new: list[Finding] = []
        """Findings that opened since they were last taken away."""
        self.on_opened: list[Callable[[Finding], object]] = []
        """What to call with each new finding; a call that raises is reported and not made again."""
        if settings.on_finding is not None:
            self.on_opened.append(settings.on_finding)
        self._place = place or script()  # now: Python has forgotten it when the script is over
        self._process = os.getpid()
        # now: of a spawned one nothing tells it if the script raises on import
        self._child = reports.is_child() or handover is not None
        self._process_wide = optimizers is None
        self._ended = False
        self._raised: str | None = None
        self._received: dict[int, ranks.RankReport] = {}
        self._of_children: list[children.Report] = []
        self._missing: list[str] = []
        self._gathered_at: int | None = None
        self._saved_at = 0
        self._handed_over: int | None = None
        self._before_destruction = Undo()
        self._linting: Linting | None = None
        self.session = Session(
            settings,
            models=given,
            optimizers=optimizers,
            on_incidents=self._opened,
            on_judged=self._judged,
            on_logged=self.log,
        )
        schedule = None
        if settings.snapshots is not None:
            from ta_runtime.snapshot.schedule import resolve

            schedule = resolve(settings.snapshots, "snapshots")
        self.recorder: Recorder | None = None
        if settings.record is not None:
            from ta_runtime.audit import recorder  # and pyarrow

            self.recorder = recorder.Recorder(settings.record, self.session, self._place)
            self.files.append(self.recorder.report)
        self.sending: Sending | None = None
        if settings.send:
            from ta_runtime.audit import sending  # and the monitor's sinks

            self.sending = sending.Sending()
        self.snapshots: Snapshots | None = None
        if self.recorder is not None and schedule is not None:
            from ta_runtime import snapshot

            self.snapshots = snapshot.Snapshots(
                self.recorder.writer,
                given[0] if len(given) == 1 else None,
                optimizers,
                schedule=schedule,
                start_step=settings.start_step,
                names=self.session.names,
            )
        self.invariants: Live | None = None
        if settings.invariants:
            from ta_runtime.invariants import live

            self.invariants = live.Live(
                self.session, settings.invariants, every=settings.invariants_every_n_steps
            )

    @property
    def script(self) -> str:
        """The file that runs."""
        return self._place

    @property
    def mine(self) -> bool:
        """Whether this process began the audit; a forked one has only a copy, and leaves the reports alone."""
        return os.getpid() == self._process

    @property
    def speaks(self) -> bool:
        """Whether this process has anything to report: a child process only once an optimizer has stepped in it, or a model
        has run whose process is watched for its parent.

        A worker that imports a script which calls `enable()` at its top has not.
        """
        acts = self.session.step_count > 0 or (
            self.handover is not None and self.session.forwards.looked_at > 0
        )
        return self.mine and (acts or not self._child)

    @property
    def findings(self) -> list[Finding]:
        """All findings so far, in order of place; on rank 0 those of every rank, once they were gathered."""
        found = [finding for _, finding in self._found(self._incidents)]
        if self._linting is None:
            return found
        suspected, _ = baseline.marked(self._linting.findings, self.accepted)
        judged = joined(suspected, found, self.inspected)
        return sorted(judged, key=lambda one: (one.site.path, one.site.line, one.site.column, one.rule))

    @property
    def linted(self) -> bool:
        """Whether the findings are those of the linter as well."""
        return self._linting is not None

    @property
    def inspected(self) -> list[Finding]:
        """Where the run looked and found nothing, or could not look, as findings; on rank 0 of every rank. See `core.verdict`."""
        return inspected(self._inspected, self.settings, self._place)

    @property
    def _incidents(self) -> list[Incident]:
        """Those of all ranks and processes, as far as they are here."""
        incidents = list(self.session.incidents)
        if self._received:
            incidents = ranks.merged(incidents, self._received)
        return children.merged(incidents, self._of_children) if self._of_children else incidents

    @property
    def _inspected(self) -> list[Inspection]:
        found = self.session.incidents.inspected
        if self._received:
            found = ranks.merged_inspected(found, self._received)
        if self._of_children:
            found = children.merged_inspected(found, self._of_children)
        incidents = self._incidents
        return [look.beside(incidents) for look in found]

    @property
    def not_seen(self) -> list[str]:
        """What the run hid, as the ends of sentences."""
        own = self._hidden
        if not self._ended:
            own.append(f"anything after step {self.session.index}, where the run was when this was written")
        others = [
            f"{what}, on rank {rank}"
            for rank, seen in sorted(self._received.items())
            for what in seen.not_seen
            if what not in own
        ]
        for report in self._of_children:
            others += [f"{what}, {report.who}" for what in report.seen.not_seen if what not in own]
        return own + list(dict.fromkeys(others)) + self._missing

    @property
    def looked(self) -> CoverageText:
        """How much of the run was looked at, on all ranks."""
        others = [seen.coverage for _, seen in sorted(self._received.items())]
        return told([self.session.coverage, *others])

    @property
    def _hidden(self) -> list[str]:
        seen = self.session.hidden.items()
        hidden = [f"{what} ({count} times)" if count > 1 else what for what, count in seen]
        if self._ended and self._process_wide and self.session.step_count == 0 and not self._of_children:
            hidden.append(self._inference)
        settings = self.settings
        if self._process_wide and not settings.invariants and settings.rules - {"TA000"} == {VIOLATED}:
            hidden.append(
                "invariants, as none are given; `invariants='FILE'` takes what `ta-runtime infer` writes"
            )
        if self._raised is not None:
            hidden.append(self._raised)
        return hidden

    @property
    def _inference(self) -> str:
        """What was seen in place of a training."""
        forwards = self.session.forwards
        if not self.session.infers or not forwards.passes:
            return reports.NO_TRAINING
        of = f"{'the first ' if forwards.passes == MOST_PASSES else ''}{forwards.passes:,}"
        return f"training, as no optimizer was built: looked at {forwards.looked_at} of {of} forward passes"

    def failing(self, level: Severity) -> bool:
        """Whether there is a finding that counts, at this severity or above."""
        return any(finding.counts and finding.severity.rank >= level.rank for finding in self.findings)

    # -- from the start to the end ----------------------------------------------------------------------------

    def lint(self) -> None:
        """Read the script, and what it imports of the project, before it runs; rank 0 does so for all ranks."""
        if not self.settings.lint or ranks.rank() or self._child:
            return
        from ta_runtime.audit.linting import Linting

        self._linting = linting = Linting(self.settings.configs, self.settings.root)
        if Path(self._place).is_file():
            self._attempt(lambda: linting.script(Path(self._place)), "the script could not be linted")
        if self.settings.live:
            files, count = len(linting.files), sum(finding.counts for finding in linting.findings)
            found = "1 suspicion" if count == 1 else f"{count} suspicions"
            reports.error_line(f"linted {'1 file' if files == 1 else f'{files} files'}: {found}")

    def start(self) -> None:
        if self.settings.live and not ranks.rank() and not self._child:
            for remark in self.settings.configs.overlooked:
                reports.error_line(f"warning: {remark}")
        self._ended = False
        self.session.start()
        if self.snapshots is not None:
            self._attempt(self.snapshots.start, "snapshots cannot be taken")
        if self.invariants is not None:
            self._attempt(self.invariants.start, "invariants cannot be looked at")
        self._before_destruction.append(hub.watch("leave_group", self._gathering, self.session.barrier.tried))
        if self.children is not None:
            self.children.attach(self.session.barrier.tried)

    def stop(self, error: BaseException | None = None, status: int = 0) -> None:
        """End the session, gather what the other ranks saw, and write the reports; `error` is what ended the run, or the
        `status` that the process ends with.
        """
        if not self.mine:
            return
        self._before_destruction()
        if self.children is not None:
            self.children.detach()
        if status:
            self._raised = f"anything after step {self.session.window.index}, in which the process failed"
        if error is not None and not isinstance(error, SystemExit):
            kind = (
                "was interrupted"
                if isinstance(error, KeyboardInterrupt)
                else f"raised `{type(error).__name__}`"
            )
            self._raised = f"anything after step {self.session.index}, in which the run {kind}"
        if self.invariants is not None:
            self._attempt(self.invariants.stop, "the last step could not be held against invariants")
        self._attempt(self.session.stop, "the last step could not be judged")
        if self.settings.save_schedule is not None and not ranks.rank():
            save = partial(self.session.looks.save, self.settings.save_schedule)
            self._attempt(save, "the schedule could not be written")
        if self.snapshots is not None:
            self._attempt(self.snapshots.stop, "the last snapshot could not be written")
        if self.recorder is not None:
            self.recorder.end(self.session.coverage)
        self._ended = True
        if self._linting is not None:
            self._attempt(self._linting.loaded, "the modules of the project could not be linted")
        patience = _HURRY if self._raised is not None else ranks.PATIENCE
        self.gather(patience)
        if self.children is not None:
            self._attempt(partial(self._gather_children, patience), "the processes could not be gathered")
        self.save()
        if self.sending is not None:
            self._attempt(partial(self.sending.end, self.findings), "what was found could not be sent")

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        """What happens inside is no part of the run."""
        self.session.paused = True
        if self.snapshots is not None:
            self.snapshots.paused = True
        try:
            yield
        finally:
            self.session.paused = False
            if self.snapshots is not None:
                self.snapshots.paused = False

    def let_go(self) -> None:
        """Take the session off torch and keep quiet: it is a copy in a fork, or another takes its place."""
        self._before_destruction()
        if self.children is not None:
            self.children.detach()
        self._attempt(self.session.stop, "the session could not be ended")
        if self.snapshots is not None:
            self._attempt(self.snapshots.stop, "snapshots could not be ended")
        if self.invariants is not None:
            self._attempt(self.invariants.let_go, "invariants could not be let go of")

    def leave(self) -> None:
        """End the session in the middle of the run, and write the reports: nothing is said of what the run has not done yet."""
        self.let_go()
        self.save()

    def ends_with(self, undo: Callable[[], object]) -> None:
        """Call this when the audit ends, whichever way."""
        self._before_destruction.append(undo)

    def gather(self, patience: timedelta = ranks.PATIENCE) -> None:
        """Judge the run so far as a whole; on rank 0 with what the other ranks saw, as far as they can be reached."""
        if self._gathered_at == self.session.step_count and not ranks.connected():
            return
        self._gathered_at = self.session.step_count
        self._attempt(lambda: self._gather(patience), "the ranks could not be gathered")

    def _gather(self, patience: timedelta) -> None:
        session = self.session
        rank, size = ranks.rank(), ranks.world_size()
        mine = ranks.RankReport(not_seen=self._hidden, coverage=session.coverage)
        if rank:
            mine.told = session.conclude(rank)
            self.save()  # before it is handed over: rank 0 then removes the file, and it stays removed
            mine.incidents, mine.inspected = list(session.incidents), session.incidents.inspected
            mine.files = [str(file.written) for file in self.files if file.written is not None]
            mine.uncompared = self.invariants.uncompared if self.invariants is not None else {}
        received = ranks.exchange(mine, patience)
        if rank:
            if received is not None:
                self._handed_over = session.step_count
            return
        if received is not None:
            self._received |= received
            if self.invariants is not None:
                for other, seen in received.items():
                    self.invariants.compare_with(other, seen.uncompared)
            absent = sorted(set(range(1, size)) - received.keys())
            self._missing = [self._unanswered(other) for other in absent]
        session.conclude(rank, {other: seen.told for other, seen in self._received.items()})
        self.save()
        if self.files and all(file.written and not file.complaint for file in self.files):
            for seen in self._received.values():
                reports.remove(seen.files)

    def _unanswered(self, rank: int) -> str:
        left = [file.of_rank(rank) for file in self.files]
        where = " and ".join(shown(path) for path in left if path.exists())
        return f"what rank {rank} saw, which did not answer" + (
            f"; see its own report, {where}" if where else ""
        )

    def _gather_children(self, patience: timedelta) -> None:
        """Take what the processes saw that the script started, in place of their own reports."""
        assert self.children is not None
        known = {finding.fingerprint for finding in self.findings}
        self._of_children += self.children.reports(patience)
        for finding in self.findings if self._of_children else ():
            if finding.fingerprint not in known:
                self.new.append(finding)
                for callback in list(self.on_opened):
                    self._call(callback, finding)
        self.save()
        own = [file for file in self.files if file.written is not None and file.complaint is None]
        for report in self._of_children:
            reports.remove(path for path in report.seen.files if any(file.replaces(path) for file in own))
        self.children.remove()

    def _gathering(self, call: Call) -> None:
        """Without its process group a rank cannot be asked any more."""
        group = call.given(0, "group")
        if self.mine and self.session.started and (group is None or group is dist.group.WORLD):
            self._attempt(self.session.flush, "the last step could not be judged")
            if self.invariants is not None:
                self._attempt(self.invariants.compare, "the ranks could not be compared")
            self.gather()

    def save(self) -> None:
        """Write the reports as they stand, each whole or not at all."""
        if not self.speaks:
            return
        for file in self.files if self._handed_over != self.session.step_count else ():
            # of a child process that did train
            if self.session.step_count == 0 and not self._of_children and file.of_another:
                continue
            if self.recorder is not None and not self.recorder.allows(file):
                continue
            self._attempt(partial(self._write, file), "the report could not be made")
        if self.handover is not None:
            self._attempt(self._hand_over, "the report could not be handed over")

    def _hand_over(self) -> None:
        assert self.handover is not None
        files = [str(file.written) for file in self.files if file.written is not None]
        seen = ranks.RankReport(
            self._incidents, not_seen=self.not_seen, files=files, inspected=self._inspected
        )
        self.handover.write(seen)

    def _write(self, file: ReportFile) -> None:
        file.write(self.rendered(file.form))

    def rendered(self, form: str, *, color: bool = False, brief: bool = False) -> str:
        """The report in one of `reports.FORMATS`; `brief` leaves out what is not a finding from those for people."""
        return reports.rendered(
            self.findings,
            form,
            self.settings.root,
            not_seen=self.not_seen,
            looked=self.looked,
            baseline=self.settings.baseline is not None,
            inspected=self.inspected,
            linted=self.linted,
            color=color,
            brief=brief,
            partial=bool(self._missing),
        )

    def summarise(self) -> None:
        """Print the table that ends a run; rank 0 speaks for all ranks."""
        if self.speaks and ranks.rank() == 0:
            folder = self.recorder.folder if self.recorder is not None else None
            reports.summary(
                self.findings,
                self.settings.root,
                self.files,
                self.not_seen,
                looked=self.looked,
                linted=self.linted,
                recorded=folder,
                partial=bool(self._missing),
            )

    def log(self, values: Mapping[str, object], step: int | None = None) -> None:
        """Record values of the run's own, by default at the last step that was made."""
        self.session.barrier.run(self._log, values, step)

    def _log(self, values: Mapping[str, object], step: int | None) -> None:
        if self.recorder is not None:
            self.recorder.log(max(self.session.index - 1, 0) if step is None else step, numbers(values))

    # -- findings ---------------------------------------------------------------------------------------------

    def _found(self, incidents: Iterable[Incident]) -> list[tuple[Incident, Finding]]:
        return findings(incidents, self.settings, self._place, self.accepted)

    def _judged(self, window: Window) -> None:
        if self.recorder is not None:
            self.recorder.add(window)
        if self.sending is not None:
            self.sending.add(window)
        if window.index >= 2 * self._saved_at:  # one that is killed leaves a report that says how far it came
            self._saved_at = max(window.index, 1)
            self.save()

    def _opened(self, incidents: list[Incident]) -> None:
        if self.mine:
            self._attempt(lambda: self._announce(incidents), "findings could not be reported")

    def _announce(self, incidents: list[Incident]) -> None:
        """Tell of the incidents that a step opened: all of them, before the first that is to stop the run does."""
        settings = self.settings
        found = {id(incident): finding for incident, finding in self._found(self.session.incidents)}
        opened = [found[id(incident)] for incident in incidents]
        self.new += opened
        if self.snapshots is not None and self.snapshots.schedule.on_incident:
            self.snapshots.take_next(f"incident: {opened[0].rule}")
        for finding in opened:
            loud = ranks.rank() == 0 or finding.severity is Severity.ERROR
            if finding.counts and settings.live and loud and self.speaks:
                reports.live(finding, settings.root, standard_error())
        self.save()
        if self.sending is not None:
            self.sending.tell(self.findings)
        for finding in opened:
            for callback in list(self.on_opened):
                self._call(callback, finding)
        level = settings.fail_level
        for finding in opened:
            if level is not None and finding.counts and finding.severity.rank >= level.rank:
                where = f"{finding.site.path}:{finding.site.line}"
                raise AuditFailed(f"{finding.rule} at {where}: {finding.message}")

    def _call(self, callback: Callable[[Finding], object], finding: Finding) -> None:
        try:
            callback(finding)
        except Exception as error:  # noqa: BLE001 - a callback never stops the run
            keep(error)
            self.on_opened.remove(callback)
            name = getattr(callback, "__qualname__", type(callback).__name__)
            reports.error_line(
                f"`{name}` raised {type(error).__name__}: {oneline(error)}; it is not called again"
            )

    def _attempt(self, action: Callable[[], object], complaint: str) -> None:
        try:
            action()
        except AuditFailed:
            raise
        except Exception as error:  # noqa: BLE001 - the run goes on
            keep(error)
            reports.error_line(f"{complaint}: {type(error).__name__}: {oneline(error)}")

    # -- the baseline -----------------------------------------------------------------------------------------

    @property
    def stale(self) -> list[Entry]:
        """The entries of the baseline that this run shows to be gone.

        A run sees only the code that ran, so an entry is judged only if its rule is one that no reading of the source
        can find, was looked for, and is about a file that was loaded here; none is if the run raised, or made no step.
        """
        if self._raised is not None or self.session.step_count == 0:
            return []
        _, unmatched = baseline.marked(self.findings, self.accepted)
        loaded = {
            os.path.realpath(path)
            for module in list(sys.modules.values())
            if isinstance(path := getattr(module, "__file__", None), str)
        }
        return [
            entry
            for entry in unmatched
            if self._looked_for(entry.rule) and os.path.realpath(self.settings.root / entry.path) in loaded
        ]

    def record(self) -> int:
        """Write the findings as the new baseline, with the old entries that were not judged; returns how many.

        Raises:
            UsageError: it cannot be written.
        """
        assert self.settings.baseline is not None
        stale = set(self.stale)
        _, unmatched = baseline.marked(self.findings, self.accepted)
        kept = [entry for entry in unmatched if entry not in stale]
        return baseline.save(self.settings.baseline, self.findings, kept)

    def _looked_for(self, rule: str) -> bool:
        settings = self.settings
        if rule not in settings.rules & checks.stems().keys() or "static" in catalogue()[rule].observers:
            return False
        asked = {check.fact for check in checks.load(rule)}
        if asked & {"optimizer", "run"}:
            return True
        return bool(
            settings.every_n_steps != 0 or ("gradients" in asked and settings.gradients_every_n_steps)
        )
