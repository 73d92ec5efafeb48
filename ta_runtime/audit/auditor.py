"""The explicit ways in, as users of torch-audit know them: `Auditor`, `audit_dynamic`, `autopatch`, `audit_step`.

All of them attach the hooks of a session and replace no method of the model or the optimizer, so that both may be
copied, pickled, scheduled and compiled as ever.
"""

import atexit
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, nn

from ta_lint.core.errors import UsageError
from ta_lint.core.finding import Finding
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.reporters import Reporter, files
from ta_runtime.audit.result import Result
from ta_runtime.audit.trial import Trial, batches, inner
from ta_runtime.probes.places import Place, here
from ta_runtime.settings import OnFinding, resolve, severity

_IN_A_ROW = 3
"""How often a batch is judged: checks that pass over an odd batch, of a warm-up or the end of an epoch, want no more of them."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Auditor:
    """Watches one model and its optimizer, between `attach` and `detach`, or as a context manager.

    Args:
        model: the model; its layers are named by their paths in it.
        optimizer: the optimizer that trains it, or several. None: whichever steps.
        overhead: the share of the time that looking may take, as for `ta_runtime.enable`.
        every_n_steps: audit the first step and then each n-th in full; by default as `ta_runtime.enable`. 0: none.
        start_step: the number of the first step, for a run that is resumed.
        reporters: where to report; without any, see `findings`.
        fail_level: `INFO`, `WARN`, `ERROR` or `FATAL`, or `note`, `warning`, `error`: from where on `exit_code` is 1.
        strict: stop the run as well, by `AuditFailed`, at the first such finding.
        baseline_file: findings that were accepted; they do not count.
        update_baseline: write the findings there when the audit ends.
        select_rules: what to look for instead of the default rules and `[tool.ta] select`.
        ignore_rules: what not to look for.
        gradients_every_n_steps, compiled, on_finding, record, snapshots: as for `ta_runtime.enable`.
        invariants, invariants_every_n_steps: the same.
        auto_finish: report at the end of the `with` block.

    Raises:
        UsageError: an argument or the project's `[tool.ta]` is wrong, or a report cannot be written where it should be.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
        *,
        overhead: float | None = None,
        every_n_steps: int | None = None,
        start_step: int = 0,
        reporters: Iterable[Reporter] = (),
        fail_level: str = "ERROR",
        strict: bool = False,
        baseline_file: str | Path | None = None,
        update_baseline: bool = False,
        select_rules: str | Iterable[str] | None = None,
        ignore_rules: str | Iterable[str] = (),
        gradients_every_n_steps: int | None = None,
        compiled: Literal["skip", "eager"] = "skip",
        on_finding: OnFinding | None = None,
        record: str | Path | None = None,
        snapshots: str | None = None,
        invariants: str | Path | Iterable[str | Path] | None = None,
        invariants_every_n_steps: int = 10,
        auto_finish: bool = True,
    ) -> None:
        self.model = model
        self.optimizers = _optimizers(optimizer)
        self.reporters = list(reporters)
        _check(model, self.reporters)
        self.auto_finish = auto_finish
        self._fail_level = severity(fail_level)
        self._update_baseline = update_baseline
        settings = resolve(
            overhead=overhead,
            every_n_steps=every_n_steps,
            gradients_every_n_steps=gradients_every_n_steps,
            start_step=start_step,
            rules=select_rules,
            ignore=ignore_rules,
            fail_level=fail_level if strict else None,
            on_finding=on_finding,
            baseline=baseline_file,
            compiled=compiled,
            live=False,
            asks=True,
            record=record,
            snapshots=snapshots,
            invariants=invariants,
            invariants_every_n_steps=invariants_every_n_steps,
            keys=("select_rules", "ignore_rules", "baseline_file"),
        )
        if update_baseline and settings.baseline is None:
            raise UsageError("update_baseline: name the file as baseline_file, or set [tool.ta] baseline")
        self.audit = Audit(
            settings,
            models=[model],
            optimizers=map(_stepping, self.optimizers) if optimizer is not None else None,
            files=files(self.reporters),
            recording=update_baseline,
        )
        for reporter in self.reporters:
            self.audit.on_opened.append(self._telling(reporter))

    # -- from the start to the end ----------------------------------------------------------------------------

    @property
    def attached(self) -> bool:
        return self.audit.session.started

    def attach(self) -> Self:
        """Begin to watch; until `detach`, or the end of the process."""
        if not self.attached:
            self.audit.start()
            atexit.register(self.detach)
        return self

    def detach(self) -> None:
        """Let go of torch, judge what is on its way, and write the files; `attach` may follow."""
        if self.attached:
            atexit.unregister(self.detach)
            self._stop(None)

    def unpatch(self) -> None:
        """`detach`, by torch-audit's name. Nothing was patched."""
        self.detach()

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        atexit.unregister(self.detach)
        self._stop(error)
        if self.auto_finish:
            self._report()

    def finish(self, report: bool = True) -> Result:
        """The result so far, with the steps that are still on their way; the audit goes on if it is attached.

        `report` has the reporters tell it. In a distributed run call it on every rank: rank 0 gathers what all saw.
        """
        audit = self.audit
        if self.attached:
            audit.session.flush()
            audit.gather()
            audit.save()
            self._record()
        if report:
            self._report()
        return Result(audit.findings, int(audit.failing(self._fail_level)), audit.not_seen)

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, in order of place."""
        return self.audit.findings

    def pop_new_findings(self) -> list[Finding]:
        """The findings that opened since this was last called."""
        new, self.audit.new = self.audit.new, []
        return new

    # -- the phases -------------------------------------------------------------------------------------------

    def audit_static(self, step: int | None = None) -> list[Finding]:
        """Check the model as it is built; returns the findings so far. It is about no `step`, which torch-audit takes."""
        session = self.audit.session
        session.audit_model(self.model, here())
        return self.findings

    def audit_init(self, step: int | None = None) -> list[Finding]:
        """Check the optimizer as it is built; returns the findings so far. It is about no `step`, which torch-audit takes.

        Raises:
            ValueError: the auditor was given no optimizer.
        """
        if not self.optimizers:
            raise ValueError("audit_init: there is no optimizer to check; give one to the Auditor")
        session = self.audit.session
        for optimizer in self.optimizers:
            session.audit_optimizer(_stepping(optimizer))
        return self.findings

    def audit_data(self, batch: Any, step: int | None = None) -> list[Finding]:
        """Check a batch by calling the model with it, as if all batches were like this one; returns the findings so far.

        The call is made in the mode that the model is in, with copies of its parameters and buffers; attributes of its
        modules and the global random generators are put back, so the training that follows is the same to the last bit.
        What the model raises is not raised here. It is called with what its `forward` takes of the batch: of a mapping
        by name, of a sequence the first, as the targets stand last; of a mapping without a name that it knows, with each value. Takes the memory of a copy of the model, and waits
        for the device. `Result.not_seen` says what the call raised, or why the model cannot be called on trial. The `step`
        that torch-audit takes is known.
        """
        place = here()
        for one in batches(inner(self.model), batch):
            self._audit_batch(one, place)
        return self.findings

    def _audit_batch(self, batch: Any, place: Place) -> None:
        with self.audit.looking_away():
            trial = Trial(self.audit.settings, self.model, batch, place)
        session = self.audit.session
        trial.step.index = session.index
        if trial.complaint is not None:
            session.not_seen[f"what the model makes of the batch of `audit_data`: {trial.complaint}"] = 1
        for _ in range(_IN_A_ROW):
            session.audit("step", trial.step)
        session.audit("data", trial.step)

    def audit_step(self) -> None:
        """Audit the step that begins now in full, whatever `every_n_steps` says; call it before the forward pass."""
        self.audit.session.audit_now()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        return self.model(*args, **kwargs)

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Call `loss.backward`."""
        loss.backward(*args, **kwargs)  # type: ignore[no-untyped-call]

    def optimizer_step(self, *args: Any, **kwargs: Any) -> Any:
        """Step the optimizer, or all, in order; returns what `step` does, the last one's if there are several.

        Raises:
            ValueError: the auditor was given no optimizer.
        """
        if not self.optimizers:
            raise ValueError("optimizer_step: there is no optimizer to step; give one to the Auditor")
        return [optimizer.step(*args, **kwargs) for optimizer in self.optimizers][-1]

    # ---------------------------------------------------------------------------------------------------------

    def _stop(self, error: BaseException | None) -> None:
        self.audit.stop(error)
        if self.audit.mine:
            self._record()

    def _record(self) -> None:
        if self._update_baseline:
            self.audit.record()

    def _report(self) -> None:
        if self.audit.speaks:
            for reporter in self.reporters:
                reporter.finished(self.audit)

    def _telling(self, reporter: Reporter) -> OnFinding:
        return lambda finding: reporter.opened(finding, self.audit)


def _optimizers(given: object) -> list[torch.optim.Optimizer]:
    several = [] if given is None else given if isinstance(given, Iterable) else [given]
    found = list(several)
    for optimizer in found:
        if not isinstance(optimizer, torch.optim.Optimizer):
            kind = type(optimizer).__name__
            raise UsageError(
                f"optimizer: {kind} is not a torch.optim.Optimizer; give one, a list of them, or None"
            )
    return found


def _stepping(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """What steps in an optimizer: of one that `Accelerator.prepare` gives, which never became an optimizer itself, that inside."""
    while "_optimizer_step_pre_hooks" not in vars(optimizer):
        inside = vars(optimizer).get("optimizer")
        if not isinstance(inside, torch.optim.Optimizer):
            break
        optimizer = inside
    return optimizer


def _check(model: object, reporters: list[Reporter]) -> None:
    if not isinstance(model, nn.Module):
        raise UsageError(f"model: {type(model).__name__} is not a torch.nn.Module")
    for reporter in reporters:
        if not (hasattr(reporter, "opened") and hasattr(reporter, "finished")):
            raise UsageError(f"reporters: {reporter!r} is not a reporter; give for example [JSONReporter()]")


def audit_dynamic(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
    **options: Any,
) -> Auditor:
    """An `Auditor` with these options, for a `with` block around the training loop."""
    return Auditor(model, optimizer, **options)


def autopatch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
    *,
    run_static: bool = True,
    run_init: bool = True,
    **options: Any,
) -> Auditor:
    """An `Auditor` with these options that watches from here on: the training loop stays as it is.

    The model is checked at once, and the optimizer if there is one, unless `run_static` and `run_init` say otherwise.
    End it by `finish()` and `unpatch()`; at the end of the process it ends by itself.
    """
    auditor = Auditor(model, optimizer, **options).attach()
    if run_static:
        auditor.audit_static()
    if run_init and auditor.optimizers:
        auditor.audit_init()
    return auditor


def audit_step(auditor: Auditor) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function that trains one step: it begins the watch, if `with auditor:` has not."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def audited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            auditor.attach()
            return function(*args, **kwargs)

        return audited

    return decorate
