"""The monitor of a training that a framework holds: it follows the steps that the framework counts."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypedDict, Unpack

import torch
from torch import Tensor, nn

from ta_lint.core.errors import UsageError
from ta_runtime.integrations.watch import quietly
from ta_runtime.monitor import ModuleMonitor, StorageManager
from ta_runtime.monitor.metrics import Function
from ta_runtime.monitor.sinks import Sink
from ta_runtime.probes import hub
from ta_runtime.probes.compile import any_compiled
from ta_runtime.probes.modules import around
from ta_runtime.probes.patching import Call
from ta_runtime.probes.steps import StepCall

P = ParamSpec("P")
Metrics = str | Iterable[str] | Mapping[str, Function]
"""Names of statistics, or functions by names of one's own."""

EVERY = 50
"""How often a training is looked at that logs nothing by itself."""


class MonitorOptions(TypedDict, total=False):
    """What is measured, and when."""

    activations: Metrics
    """By default `("mean", "std")`."""
    parameters: Metrics
    """By default `("norm",)`, before the update."""
    gradients: Metrics
    """By default `("norm",)`, as the optimizer sees them: accumulated, reduced, unscaled, clipped."""
    every_n_steps: int | None
    """Step 0 and each n-th after it; None: the steps that the framework logs."""
    before_clip: bool
    """Measure gradients also before `torch.nn.utils` clips them, as `gradient_before_clip/...`."""
    sinks: Iterable[Sink]
    excluded_modules_regex: str
    compiled: Literal["skip", "eager"]
    sync: bool


_USUAL: dict[str, Metrics] = {"activations": ("mean", "std"), "parameters": ("norm",), "gradients": ("norm",)}
_PASSED_ON = ("excluded_modules_regex", "compiled", "sync")


def _guarded(
    method: "Callable[Concatenate[Monitoring, P], None]",
) -> "Callable[Concatenate[Monitoring, P], None]":
    """What goes wrong is said, and ends the monitoring of this training and not the training."""

    @wraps(method)
    def run(monitoring: "Monitoring", /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not monitoring.on:
            return
        failed = True
        with quietly():
            method(monitoring, *args, **kwargs)
            failed = False
        if failed:
            monitoring.give_up()

    return run


class Monitoring:
    """A monitor, its own or one that is given, from the beginning of a training to its end.

    Raises:
        TypeError: there is no such option.
        UsageError: an option is wrong, or has to do with what a monitor that is given does by itself.
    """

    def __init__(self, monitor: ModuleMonitor | None, options: MonitorOptions) -> None:
        if unknown := options.keys() - MonitorOptions.__annotations__.keys():
            raise TypeError(f"a monitor has no option {', '.join(sorted(unknown))}")
        if monitor is not None and (own := options.keys() - {"before_clip"}):
            raise UsageError(f"{min(own)}: the given monitor already has its own")
        every = options.get("every_n_steps")
        if every is not None and every < 1:
            raise UsageError(f"every_n_steps: {every} is not a number of steps, 1 or more")
        self.on = False
        self._options = options
        self._given = monitor
        self._storage = StorageManager(sinks=options.get("sinks", ()))
        self._logged_every = EVERY
        self._guests: list[Sink] = []
        self._step = ExitStack()  # what is attached for the step that runs
        self._elsewhere = ExitStack()
        self._measured: dict[
            bool, set[int]
        ] = {}  # parameters of which the step has the gradients, by `before_clip`
        self._fresh: int | None = None
        self.monitor = monitor or self._made()

    def __reduce__(self) -> Any:  # a process that is spawned has a monitor of its own
        return Monitoring, (self._given, self._options)

    # -- from the beginning of a training to its end -------------------------------------------------------------

    def begin(self, model: nn.Module, logged_every: int = EVERY, sinks: Iterable[Sink] = ()) -> None:
        """A training begins.

        Args:
            model: what is trained. A monitor that has a part of it for its module keeps that.
            logged_every: the framework logs each so-many-th step, the first of them the last so many.
            sinks: get the numbers until the end.
        """
        self.end()  # an earlier one raised, and nobody was told
        with quietly():
            self._watch(model)
            self._logged_every = max(1, logged_every)
            self._guests = list(sinks)
            self.monitor.storage.sinks.extend(self._guests)
            self.on = True

    @_guarded
    def end(self) -> None:
        """The training is over, by an exception or not."""
        self.end_step()
        self.on = False
        storage = self.monitor.storage  # with the numbers that were on their way
        storage.flush()
        for sink in self._guests:
            with suppress(ValueError):
                storage.sinks.remove(sink)

    def give_up(self) -> None:
        """Let go of the model."""
        self.on = False
        with quietly():
            self._elsewhere.close()
            self._step.close()
            self.monitor.end_step()

    # -- steps ---------------------------------------------------------------------------------------------------

    @_guarded
    def begin_step(self, step: int) -> None:
        """The batches and the update to come are those of a step; of a lower one, if another training has begun."""
        monitor = self.monitor
        if monitor.current_step is not None and step < monitor.current_step:
            monitor.storage.clear()
            monitor.current_step = None
        if monitor.begin_step(step):
            self._attach(monitor)

    def during_step(self, undo: Callable[[], object]) -> None:
        """What to undo when the step is over."""
        self._step.callback(undo)

    @_guarded
    def after_micro_batch(self) -> None:
        """A micro-batch is over, and the step may not be."""
        self.monitor.after_micro_batch()

    @_guarded
    def end_batch(self) -> None:
        """A micro-batch is over, and the step is not: what runs until `begin_batch` is something else."""
        self.monitor.after_micro_batch()
        self._elsewhere.enter_context(self.monitor.no_monitor())

    @_guarded
    def begin_batch(self) -> None:
        """The next micro-batch of the same step."""
        self._elsewhere.close()

    @_guarded
    def before_update(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer steps next, with the gradients as they are."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        own = {id(parameter) for parameter in self._module.parameters()}
        if own.isdisjoint(map(id, parameters)):
            return
        if not self._measured.get(False):  # of several optimizers, before the first
            self.monitor.monitor_parameters()
        self._measure(parameters, before_clip=False)

    @_guarded
    def abandon_step(self) -> None:
        """The step that has begun is not to come; what was measured of it already is kept."""
        self.monitor.current_step_monitored = False

    @_guarded
    def end_step(self) -> None:
        """The update is over, or a gradient scaler has skipped it."""
        self._elsewhere.close()
        self._step.close()
        if self.monitor.current_step_monitored:
            self._fresh = self.monitor.current_step
        self.monitor.end_step()

    # -- what came of it -----------------------------------------------------------------------------------------

    def fresh(self) -> dict[str, float]:
        """The numbers of the last step that was monitored, and which it was; nothing if they were given out before."""
        step, self._fresh = self._fresh, None
        if step is None:
            return {}
        values: dict[str, float] = {}
        with quietly():
            values = self.monitor.storage.get_step(step)
        return {"monitor/step": step, **values}

    # -- the monitor ---------------------------------------------------------------------------------------------

    def _made(self) -> ModuleMonitor:
        options = {name: value for name, value in self._options.items() if name in _PASSED_ON}
        monitor = ModuleMonitor(self._is_due, storage=self._storage, **options)  # type: ignore[arg-type]
        adding = {
            "activations": monitor.add_activation_metric,
            "parameters": monitor.add_parameter_metric,
            "gradients": monitor.add_gradient_metric,
        }
        for kind, add in adding.items():
            metrics: Any = self._options.get(kind, _USUAL[kind])
            names = [metrics] if isinstance(metrics, str) else metrics
            for name in names:
                try:
                    add(name, names[name] if isinstance(names, Mapping) else None)
                except ValueError as error:
                    raise UsageError(f"{kind}: {error}") from error
        return monitor

    def _is_due(self, step: int) -> bool:
        every = self._options.get("every_n_steps")
        return (step + 1) % self._logged_every == 0 if every is None else step % every == 0

    def _watch(self, model: nn.Module) -> None:
        known = self.monitor.module
        if known is not None and not any(part is known for part in model.modules()):
            if self._given is not None:
                raise UsageError("the given monitor watches another model; make a callback for this one")
            self._storage.clear()
            self.monitor = self._made()
        if self.monitor.module is None:
            self.monitor.set_module(model)

    @property
    def _module(self) -> nn.Module:
        assert self.monitor.module is not None
        return self.monitor.module

    # -- what is attached for a monitored step -------------------------------------------------------------------

    def _attach(self, monitor: ModuleMonitor) -> None:
        self._measured = {False: set(), True: set()}
        self._step.callback(hub.watch("step", self._stepping, hub.directly))
        if self._options.get("before_clip"):
            self._step.callback(hub.watch("clip", self._clipping, hub.directly))
        if not any_compiled(monitor.module_names):
            self._skip_evaluations(monitor)

    def _stepping(self, call: Call) -> None:
        assert isinstance(call, StepCall)
        if not call.has_closure:  # or forward and backward are still to come
            self.before_update(call.args[0])

    def _clipping(self, call: Call) -> None:
        parameters = call.args[0]
        self._before_clip([parameters] if isinstance(parameters, Tensor) else list(parameters))

    @_guarded
    def _before_clip(self, parameters: list[Tensor]) -> None:
        self._measure(parameters, before_clip=True)

    def _measure(self, parameters: Iterable[Tensor], *, before_clip: bool) -> None:
        """The gradients of parameters, of each once in a step, also if it is clipped or used again."""
        measured = self._measured.setdefault(before_clip, set())
        new = [parameter for parameter in parameters if id(parameter) not in measured]
        measured.update(map(id, new))
        self.monitor.monitor_gradients(before_clip, new)

    def _skip_evaluations(self, monitor: ModuleMonitor) -> None:
        """A forward pass of the model that records no graph is no training."""
        evaluation = self._step.enter_context(ExitStack())

        def enter(*_: Any) -> None:
            if not torch.is_grad_enabled():
                evaluation.enter_context(monitor.no_monitor())

        def leave(*_: Any) -> None:
            evaluation.close()

        self._step.callback(around(self._module, enter, leave, always=True))


class Monitored:
    """A callback of a framework that holds a `Monitoring`; it stands before the framework's own class."""

    def __init__(self, monitor: ModuleMonitor | None = None, **options: Unpack[MonitorOptions]) -> None:
        """What is measured, and when.

        Args:
            monitor: one that has its metrics and its schedule, and maybe its module; None makes one by the options.
            options: those of `MonitorOptions`; beside a monitor `before_clip` alone.

        Raises:
            TypeError: there is no such option.
            UsageError: an option is wrong, or has to do with what a monitor that is given does by itself.
        """
        super().__init__()
        self._monitoring = Monitoring(monitor, options)

    @property
    def monitor(self) -> ModuleMonitor:
        """That of the training that runs, or ran last."""
        return self._monitoring.monitor
