"""What a session reads of the steps of a run, written into the folder of the run.

All of it is what the audit reads anyway: nothing more is asked of a tensor or a device. `runs.schema` lists the keys.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ta_lint.core.errors import oneline
from ta_runtime.audit import description
from ta_runtime.audit.curves import Curves
from ta_runtime.coverage import Coverage
from ta_runtime.facts import Gradients, Step
from ta_runtime.faults import keep
from ta_runtime.observers.context import Context
from ta_runtime.observers.window import Window
from ta_runtime.probes.registers import Register
from ta_runtime.reports import ReportFile, is_child
from ta_runtime.runs import RunWriter
from ta_runtime.storage import Place

SAMPLED_EVERY = 10
"""Steps that are looked at from one whose single gradient norms are recorded to the next."""


class Recorder:
    """Records the steps of one session, as this rank sees them.

    Raises:
        UsageError: the folder cannot be written to, or holds a run already.
    """

    def __init__(self, folder: Place, session: Context, script: str = "") -> None:
        self.writer = RunWriter(folder)
        self.report = ReportFile(self.writer.folder / "findings.json", private=True)
        self._session, self._names = session, session.names
        self._settings: dict[int, dict[str, Any]] = {}  # of the optimizers, by number
        if not is_child():  # it may never train
            self.writer.describe({"git": description.commit(Path(script).parent)})
        self._curves = Curves()
        self._tensors: Register[tuple[list[int], list[str]]] = Register()  # of each optimizer, ids and names
        self._looked = self._described = 0
        self._logged: dict[str, float] = {}  # at one step, where the last value of a name holds
        self._logged_at = 0

    @property
    def folder(self) -> Place:
        return self.writer.folder

    def end(self, coverage: Coverage) -> None:
        """Write what is waiting, and how much was looked at: the run is over."""
        self._try(self._add_logged)
        self.writer.flush()
        self.writer.describe({"looked": asdict(coverage)})
        self.writer.end()

    def allows(self, file: ReportFile) -> bool:
        """Whether a report can be written: its own not where the folder is another run's, or cannot be written to."""
        return file is not self.report or (self.writer.begin() and self.folder.is_dir())

    def add(self, window: Window) -> None:
        """Record a step whose numbers are all here. What goes wrong ends the recording, and not the run."""
        self._try(partial(self._add, window))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record values that the run logs at a step."""
        self._try(partial(self._log, step, values))

    def _try(self, record: Callable[[], object]) -> None:
        if self.writer.open:
            try:
                record()
            except Exception as error:  # noqa: BLE001 - whatever it is
                keep(error)
                self.writer.give_up(f"{type(error).__name__}: {oneline(error)}")

    def _log(self, step: int, values: Mapping[str, float]) -> None:
        if step != self._logged_at:
            self._add_logged()
        self._logged_at = step
        self._logged.update({f"logged/{name}": value for name, value in values.items()})

    def _add_logged(self) -> None:
        logged, self._logged = self._logged, {}
        self._add_rows(self._logged_at, logged)

    def _add_rows(self, step: int, values: Mapping[str, float | None]) -> None:
        self.writer.metrics.add(
            [{"step": step, "key": key, "value": value} for key, value in values.items() if value is not None]
        )

    def _add(self, window: Window) -> None:
        if self._logged_at <= window.index:
            self._add_logged()
        closely = window.step is not None or self._looked % SAMPLED_EVERY == 0
        values = dict(self._curves.of(window))
        for gradients in window.gradients:
            optimizer = gradients.optimizer.optimizer
            if (number := self._curves.number(optimizer)) not in self._settings:
                self._settings[number] = description.of_optimizer(optimizer)
            if closely:
                values.update(self._of_gradients(gradients))
        if closely:
            values.update(description.memory())
        if window.step is not None:
            values.update(self._of_states(window.step))
            values.update(self._of_activations(window.step))
        self._add_rows(window.index, values)
        if len(self._settings) > self._described:
            self._describe(window.gradients)
        if self._looked == 0:  # the folder then shows that it is in use, and by whom
            self.writer.flush()
        self._looked += 1

    def _describe(self, gradients: Sequence[Gradients]) -> None:
        """Say what the run is set to, when it first steps and with each optimizer that joins."""
        self._described = len(self._settings)
        facts: dict[str, Any] = {"optimizers": [self._settings[number] for number in sorted(self._settings)]}
        device = next((tensor.device for one in gradients for tensor in one.tensors), None)
        if device is not None:
            facts |= dict(description.of_run(self._session, device))
        self.writer.describe(facts)

    def _of_gradients(self, gradients: Gradients) -> Iterator[tuple[str, float | None]]:
        for name, norm in zip(self._names_of(gradients), gradients.norms, strict=False):
            yield f"gradient/{name}/norm", norm

    def _of_states(self, step: Step) -> Iterator[tuple[str, float | None]]:
        """Of parameters: what else is measured are the statistics of normalisations."""
        measured = [state.tensor for state in step.states] + [update.tensor for update in step.updates]
        names = self._names.of_parameters(measured)
        for state in step.states:
            if id(state.tensor) in names or state.tensor.requires_grad:
                yield f"parameter/{names.get(id(state.tensor)) or state.parameter.name}/norm", state.norm
        for update in step.updates:
            yield f"update/{names.get(id(update.tensor)) or update.parameter.name}/ratio", update.ratio

    def _of_activations(self, step: Step) -> Iterator[tuple[str, float | None]]:
        """The root mean square of the first output of each module without children, over all its calls in the step."""
        sums: dict[str, tuple[float, int]] = {}
        for forward in step.training_forwards:
            names = self._names.of_modules(forward.model.module)
            for call in forward.calls:
                output = call.outputs[0] if call.outputs else None
                if call.module._modules or output is None or output.norm is None or not output.measured:
                    continue
                name = names.get(id(call.module), type(call.module).__name__)
                squares, elements = sums.get(name, (0.0, 0))
                sums[name] = squares + output.norm * output.norm, elements + output.measured
        for name, (squares, elements) in sums.items():
            yield f"activation/{name}/rms", math.sqrt(squares / elements)

    def _names_of(self, gradients: Gradients) -> list[str]:
        """What the parameters of an optimizer are called; looked up anew when they are others."""
        ids = list(map(id, gradients.tensors))
        known = self._tensors.get(gradients.optimizer.optimizer)
        if known is None or known[0] != ids:
            names = self._names.of_parameters(gradients.tensors)
            found = [names.get(id(tensor)) or gradients.parameter(index).name
                     for index, tensor in enumerate(gradients.tensors)]  # fmt: skip
            known = ids, found
            self._tensors.add(gradients.optimizer.optimizer, known)
        return known[1]
