"""What a run measures and finds, sent to what the script has open: runs of W&B and MLflow, a writer of TensorBoard."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ta_lint.core.errors import oneline
from ta_lint.core.finding import Finding, Severity
from ta_runtime import ranks, reports
from ta_runtime.audit.curves import Curves
from ta_runtime.faults import Shield, keep
from ta_runtime.monitor.sinks import MLflow, Sink, TensorBoard, Wandb
from ta_runtime.observers.window import Window
from ta_runtime.runs import trackers

_STEP = "ta/step"
_FINDINGS = "ta/findings"
_TENSORBOARD = "tensorboard"
_SERVER = 1.0
"""Seconds from one step that is sent to a server to the next."""


class _Sink(Sink, Protocol):
    def tell(self, step: int, name: str, text: str) -> None: ...


@dataclass
class _Target:
    """What takes numbers and texts, as long as it is open."""

    sink: _Sink
    is_open: Callable[[], bool]
    pause: float = 0.0
    sent: float = float("-inf")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        now = time.monotonic()
        if now - self.sent >= self.pause:
            self.sent = now
            self.sink.write(step, values)

    def tell(self, step: int, counts: Mapping[str, float], text: str) -> None:
        self.sink.write(step, counts)
        self.sink.tell(step, _FINDINGS, text)


class Sending:
    """Sends from rank 0. A tracker that fails is told of once and gets no more, while the run goes on."""

    def __init__(self) -> None:
        self._targets: dict[str, _Target] = {}
        self._failed: set[str] = set()
        self._curves = Curves()
        self._steps = self._last = 0

    def add(self, window: Window) -> None:
        """Send the numbers of a step, which are all here."""
        self._steps += 1
        self._last = window.index
        curves = self._curves.of(window)
        values = {key.replace("step/", "ta/", 1): value for key, value in curves if value is not None}
        self._each(lambda target: target.write(window.index, values))

    def tell(self, findings: Sequence[Finding]) -> None:
        """Send all findings so far, with the last step: how many there are, and their text in the place of that before."""
        counting = [finding for finding in findings if finding.counts]
        counts = {
            f"ta/{severity}s": float(sum(one.severity is severity for one in counting))
            for severity in Severity
        }
        text = "\n".join(map(_line, counting)) or "nothing wrong was found"
        self._each(lambda target: target.tell(self._last, counts, text))

    def end(self, findings: Sequence[Finding]) -> None:
        """Send the findings of the whole run, and what is on its way."""
        self.tell(findings)
        self._each(lambda target: target.sink.close())
        self._targets.clear()

    def _each(self, send: Callable[[_Target], object]) -> None:
        if ranks.rank():
            return
        for key, target in self._open():
            try:
                send(target)
            except Exception as error:  # noqa: BLE001 - of any library, a disk or a network; none may end the training
                keep(error)
                self._failed.add(key)
                reports.error_line(
                    f"{target.sink} gets no more of what is measured and found, while the run goes on: "
                    f"{type(error).__name__}: {oneline(error)}"
                )

    def _open(self) -> list[tuple[str, _Target]]:
        """Those that are open now; what was opened meanwhile is among them."""
        for look in (self._wandb, self._mlflow, self._tensorboard):
            with Shield():  # another release of a library, and no reason to end a training
                self._targets |= look()
        self._targets = {key: target for key, target in self._targets.items() if target.is_open()}
        return [(key, target) for key, target in self._targets.items() if key not in self._failed]

    def _wandb(self) -> Iterator[tuple[str, _Target]]:
        wandb: Any = sys.modules.get("wandb")
        run = getattr(wandb, "run", None)
        if run is not None and (key := f"wandb {run.id}") not in self._targets:
            yield key, _Target(Wandb(run, step=_STEP, own_rows=False), lambda: wandb.run is run)

    def _mlflow(self) -> Iterator[tuple[str, _Target]]:
        """A run that has ended takes what comes later as well."""
        run = trackers.active_run()
        if run is not None and (key := f"mlflow {run.info.run_id}") not in self._targets:
            yield key, _Target(MLflow(run, waits=False), lambda: True, _SERVER)

    def _tensorboard(self) -> Iterator[tuple[str, _Target]]:
        """One of the writers, as several would tell the same; looked for at steps 1, 2, 4 and so on."""
        if _TENSORBOARD in self._targets or self._steps & (self._steps - 1):
            return
        writers = trackers.writers(("torch.utils.tensorboard",))
        writer = next((each for each in writers if each.file_writer is not None), None)
        if writer is not None:
            yield _TENSORBOARD, _Target(TensorBoard(writer), lambda: writer.file_writer is not None)


def _line(finding: Finding) -> str:
    place = f"{finding.site.path}:{finding.site.line}"
    return f"- {finding.rule} {finding.severity}, {place}: {finding.message}"
