"""An audit: a session, and what becomes of its findings: live lines, callbacks, the report file, the end of the run."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.finding import Finding
from ta_runtime import ranks, reports
from ta_runtime.findings import findings
from ta_runtime.incidents import Incident
from ta_runtime.observers.patching import Patch
from ta_runtime.session import AuditFailed, Session, script
from ta_runtime.settings import Settings


class Audit:
    """One session with its report. `enable` and `Auditor` each hold one."""

    def __init__(
        self,
        settings: Settings,
        *,
        models: Iterable[nn.Module] = (),
        optimizers: Iterable[torch.optim.Optimizer] | None = None,
    ) -> None:
        self.settings = settings
        self.new: list[Finding] = []
        """Findings that opened since they were last taken away."""
        self._callback_works = True
        self._disk_complaint: str | None = None
        self._process = os.getpid()
        self._received: dict[int, ranks.Seen] = {}
        self._before_destruction: Patch | None = None
        self.session = Session(settings, models=models, optimizers=optimizers, on_incident=self._opened)

    @property
    def findings(self) -> list[Finding]:
        """All findings so far, in order of place; on rank 0 those of every rank, once they were gathered."""
        incidents = list(self.session.incidents)
        if self._received:
            incidents = ranks.merged(incidents, self._received)
        return findings(incidents, self.settings, script())

    @property
    def not_seen(self) -> list[str]:
        return [
            f"{what} ({count} times)" if count > 1 else what for what, count in self.session.not_seen.items()
        ]

    def start(self) -> None:
        self.session.start()
        if dist.is_available():
            self._before_destruction = Patch(dist, "destroy_process_group", self._gathering)

    def stop(self) -> None:
        """End the session, gather what the other ranks saw, and write the report."""
        if os.getpid() != self._process:  # a forked worker has its parent's report, not one of its own
            return
        if self._before_destruction is not None:
            self._before_destruction.undo()
        self.session.stop()
        self.gather()
        self.save()

    def gather(self) -> None:
        """Judge the run so far; on rank 0 with what the other ranks saw, as far as they can be reached."""
        session = self.session
        rank, size = ranks.rank(), ranks.world_size()
        if rank:
            session.conclude(rank, size)
        digests = [loader.digests for loader in session.loaders.found]
        self._received |= ranks.exchange(ranks.Seen(list(session.incidents), digests))
        if not rank:
            session.conclude(rank, size, {other: seen.digests for other, seen in self._received.items()})

    def _gathering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Without its process group a rank cannot be asked any more."""

        def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
            try:
                self.session.flush()
                self.gather()
            except Exception as error:  # noqa: BLE001 - the run goes on
                reports.error(f"the ranks could not be gathered: {oneline(error)}")
            return original(*args, **kwargs)

        return destroy_process_group

    def save(self) -> None:
        """Write the report as it stands, whole or not at all."""
        path = self.output
        if path is None or os.getpid() != self._process:
            return
        complaint = reports.save(path, self.rendered(reports.format_of(path)))
        if complaint is not None and complaint != self._disk_complaint:
            reports.error(f"{complaint}; the run goes on, and the report is tried again with the next finding")
        self._disk_complaint = complaint

    @property
    def output(self) -> Path | None:
        """Where this process writes: the file that was named, with the rank in front of its suffix for ranks above 0."""
        path = self.settings.output
        rank = ranks.rank()
        return path.with_name(f"{path.stem}.rank{rank}{path.suffix}") if path is not None and rank else path

    def rendered(self, form: str, *, color: bool = False) -> str:
        return reports.rendered(
            self.findings,
            form,
            self.settings.root,
            not_seen=self.not_seen,
            baseline=self.settings.baseline is not None,
            color=color,
        )

    def _opened(self, incident: Incident) -> None:
        [finding] = [
            finding
            for finding in findings([incident], self.settings, script())
            if finding.rule == incident.rule
        ][:1]
        self.new.append(finding)
        if finding.counts and self.settings.live:
            reports.live(finding, self.settings.root, sys.stderr)
        self.save()
        self._call(finding)
        level = self.settings.fail_level
        if finding.counts and level is not None and finding.severity.rank >= level.rank and self.session.started:
            raise AuditFailed(f"{finding.rule} at {finding.site.path}:{finding.site.line}: {finding.message}")

    def _call(self, finding: Finding) -> None:
        callback = self.settings.on_finding
        if callback is None or not self._callback_works:
            return
        try:
            callback(finding)
        except Exception as error:  # noqa: BLE001 - a callback never stops the run
            self._callback_works = False
            reports.error(f"on_finding raised {type(error).__name__}: {oneline(error)}; it is not called again")
