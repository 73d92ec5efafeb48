"""Metrics of the activations, parameters and gradients of a model, in the steps that one wants to look at."""

import logging
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from torch import Tensor, nn

from ta_runtime.faults import keep
from ta_runtime.measure.kinds import local
from ta_runtime.monitor import attention, mixin, reference
from ta_runtime.monitor.interface import Companion
from ta_runtime.monitor.measured import Owners
from ta_runtime.monitor.metrics import Aggregate, Function, Metrics, Wanted
from ta_runtime.monitor.names import MonitoredNames, format_module_name, outputs
from ta_runtime.monitor.reference import Reference
from ta_runtime.monitor.sinks import Sink
from ta_runtime.monitor.storage import StorageManager, at_end
from ta_runtime.monitor.tally import Memory, StepMetrics
from ta_runtime.naming import wrapped
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.compile import Compilers, any_compiled, captured
from ta_runtime.probes.module_hooks import Hooks
from ta_runtime.probes.work import own_work


class ModuleMonitor:
    """Watches one model, and compares it with a reference if it is given one.

        monitor = ModuleMonitor(monitor_step_fn=lambda step: step % 10 == 0)
        monitor.set_module(model)
        monitor.add_activation_metric("std")
        monitor.add_gradient_metric("norm", lambda gradient: gradient.norm())

        for step, (inputs, targets) in enumerate(loader):
            monitor.begin_step(step)
            loss = criterion(model(inputs), targets)
            loss.backward()
            monitor.monitor_gradients()
            optimizer.step()
            optimizer.zero_grad()
            monitor.end_step()
            if monitor.is_step_monitored(step):
                print(monitor.get_step_metrics())

    A metric is a function of a tensor, or of a tensor and its counterpart in the reference, without a graph. It gives a
    tensor, a number, or a dict of these. The keys are `activation/{module}/{metric}`, `activation_difference/...`,
    `parameter/{parameter}/{metric}`, `parameter_difference/...`, `gradient/...` and `gradient_before_clip/...`; those of
    a dict are put behind, with nothing between. Of a module that puts out several tensors each has its place in the
    name, as in `activation/encoder[0]/std` or `activation/encoder[hidden.1]/std`. Regular expressions are matched from
    the beginning of the name of the module or parameter, without what `torch.compile` and FSDP put into it.

    What comes of several micro-batches, or calls of one module, is put together as the mean over all elements of all
    results, or by `metric_aggregation_fn`, which gets all results of a step as one tensor. Exact over all of them are
    the statistics that we know, `ta_runtime.monitor.statistics`: std, max and norm are those of the union. They are
    known by name (`add_activation_metric("std")`), as they are (`statistics.std`, `torch.std`), and as plain functions
    such as `lambda x: x.std()`; and they cost much less, as tensors of one shape are measured together.

    Numbers stay on their device until the step ends and come back in one copy; nothing waits for them but who asks.
    A step that is not monitored costs nothing, and there are no hooks in the model. A metric that raises is logged once
    and does not stop the run. What the monitor does leaves weights and random numbers as they are to the last bit.

    Compiled code is not heard: its activations are left out, and the logger is told once; `compiled="eager"` runs
    monitored steps uncompiled. Parameters and gradients are seen either way.

    Of parameters and gradients that are distributed (`DTensor`, as FSDP2 has them) each rank measures its own part. With
    `sync=True` the statistics that we know are those of the whole, after one small collective for each kind of
    distribution, and other functions are given the whole tensor; then all ranks have to monitor the same steps.

    Args:
        monitor_step_fn: whether a step is monitored; None for all.
        format_module_name_fn: makes a name for the keys of one of `named_modules` or `named_parameters`.
        excluded_modules_regex: formatted names of modules whose activations are not monitored.
        logger: told what could not be measured, and more; by default `ta_runtime.monitor`.
        cpu_offload: keep the activations of the reference in the memory of the CPU, and compare there.
        storage: what takes the numbers; by default a new one with `sinks`.
        sinks: of `ta_runtime.monitor.sinks`, to which each step goes.
        compiled: what to do with a model that is compiled, see above.
        sync: whether to measure distributed tensors as a whole, see above.

    Raises:
        ValueError: there are both a storage and sinks.
    """

    def __init__(
        self,
        monitor_step_fn: Callable[[int], bool] | None = lambda step: step % 20 == 0,
        format_module_name_fn: Callable[[str], str] = format_module_name,
        excluded_modules_regex: str = r"$.^",
        logger: logging.Logger | None = None,
        cpu_offload: bool = False,
        *,
        storage: StorageManager | None = None,
        sinks: Iterable[Sink] = (),
        compiled: Literal["skip", "eager"] = "skip",
        sync: bool = False,
    ) -> None:
        if storage is not None and sinks:
            raise ValueError("there are both `storage` and `sinks`: give the sinks to the storage")
        self.monitor_step_fn = monitor_step_fn
        self.format_module_name_fn = format_module_name_fn
        self.logger = logger or logging.getLogger("ta_runtime.monitor")
        self.cpu_offload = cpu_offload
        self.compiled = compiled
        self.sync = sync
        self.module: nn.Module | None = None
        self.current_step: int | None = None
        self.current_step_monitored = False
        self.ignore_reference_module_activations = False
        self._excluded = re.compile(excluded_modules_regex)
        self._activations = Metrics("activation")
        self._activation_differences = Metrics("activation_difference", 2)
        self._parameters = Metrics("parameter")
        self._parameter_differences = Metrics("parameter_difference", 2)
        self._gradients = Metrics("gradient")
        self._names: MonitoredNames | None = None
        self._reference: Reference | None = None
        self._hooks: Hooks | None = None
        self._reference_hooks: Hooks | None = None
        self._companions: weakref.WeakSet[Companion] = weakref.WeakSet()
        self._is_left_out = False  # what runs is compiled, and not heard
        self._compilers = Compilers(lambda: None)
        self._paused = 0
        self._called = False  # whether any module was, in this step
        self._usual: dict[str, Wanted] = {}  # of modules that are compared with nothing
        self._met: dict[
            int, tuple[weakref.ref[Tensor], int, Owners]
        ] = {}  # outputs of this step, if they live
        self._warned: set[str] = set()
        self._memory = Memory()  # of one step for the next
        self._tally = self._new_tally()
        self._pending: list[
            tuple[int, StepMetrics]
        ] = []  # of steps that have ended, whose numbers are on their way
        self._storage = storage or StorageManager(logger, sinks)
        at_end(self, _hand_over, self._pending, self._storage, self.logger)  # while the sinks are open
        weakref.finalize(self, self._compilers.lift)

    # -- what is measured -------------------------------------------------------------------------------------

    def add_activation_metric(
        self,
        metric_name: str,
        metric_fn: Function | str | None = None,
        metric_regex: str = ".*",
        metric_aggregation_fn: Aggregate | None = None,
    ) -> None:
        """Measure what modules put out.

        Args:
            metric_name: stands in the keys.
            metric_fn: of a tensor; or the name of a statistic, by default `metric_name`.
            metric_regex: of the names of the modules.
            metric_aggregation_fn: brings the results of a step together, which it gets as one tensor of one dimension,
                or as a list if they are numbers.

        Raises:
            ValueError: there is such a metric already, or no such statistic.
        """
        self._activations.add(metric_name, metric_fn, metric_regex, metric_aggregation_fn)
        self._rehook()

    def add_activation_difference_metric(
        self,
        metric_name: str,
        metric_fn: Function | str | None = None,
        metric_regex: str = ".*",
        metric_aggregation_fn: Aggregate | None = None,
    ) -> None:
        """The same of two tensors: what a module puts out, and what its counterpart in the reference did.

        A statistic is that of their difference.
        """
        self._activation_differences.add(metric_name, metric_fn, metric_regex, metric_aggregation_fn)
        self._rehook()

    def add_parameter_metric(
        self, metric_name: str, metric_fn: Function | str | None = None, metric_regex: str = ".*"
    ) -> None:
        """Measure parameters, when `monitor_parameters` is called. Arguments as for activations."""
        self._parameters.add(metric_name, metric_fn, metric_regex)

    def add_parameter_difference_metric(
        self, metric_name: str, metric_fn: Function | str | None = None, metric_regex: str = ".*"
    ) -> None:
        """The same of two tensors: a parameter, and that of the same name in the reference."""
        self._parameter_differences.add(metric_name, metric_fn, metric_regex)

    def add_gradient_metric(
        self, metric_name: str, metric_fn: Function | str | None = None, metric_regex: str = ".*"
    ) -> None:
        """Measure the gradients of parameters, when `monitor_gradients` is called. Arguments as for activations."""
        self._gradients.add(metric_name, metric_fn, metric_regex)

    # -- the modules ------------------------------------------------------------------------------------------

    def set_module(self, module: nn.Module) -> None:
        """The model to monitor. Nothing is changed in it.

        Raises:
            ValueError: there is one already, or it is None.
        """
        if module is None:
            raise ValueError("the module to monitor is None")
        if self.module is not None:
            raise ValueError("a module is monitored already: make another monitor for another module")
        self.module = module
        self._names = MonitoredNames(module, self.format_module_name_fn)
        mixin.introduce(module, self, False)

    def set_reference_module(self, module: nn.Module | None) -> None:
        """What to compare the model with, such as a copy of it at initialisation; None for nothing any more.

        In each micro-batch of a monitored step it has to run on the same input before the model does, by `run_reference`,
        or by hand under `no_monitor` or `torch.no_grad`. What it puts out is copied until the micro-batch is over.

        Raises:
            ValueError: there is no module to monitor, or it has modules of other names.
        """
        if self._names is None:
            raise ValueError("there is no module to monitor yet: call `set_module` first")
        self.remove_reference_module()
        if module is None:
            return
        names = MonitoredNames(module, self.format_module_name_fn)
        if different := set(self._names.modules.values()) ^ set(names.modules.values()):
            raise ValueError(
                f"the reference needs the modules of the monitored one: {min(different)!r} is in one of them alone"
            )
        self._reference = Reference(module, names)
        mixin.introduce(module, self, True)
        self._rehook()

    def has_reference_module(self) -> bool:
        return self._reference is not None

    def remove_reference_module(self) -> None:
        """Compare with nothing any more."""
        if self._reference is not None:
            mixin.introduce(self._reference.module, None, False)
            self._reference = None
            self._rehook()

    def run_reference(self, *args: Any, **kwargs: Any) -> Any:
        """Run the reference, and leave no trace: its buffers and torch's random generators are as they were.

        So a batch norm does not count the batch, and dropout drops in the model what it dropped in the reference.
        Who runs the reference by hand has to see to this. Nothing is recorded for a backward pass.

        Raises:
            ValueError: there is no reference.
        """
        if self._reference is None:
            raise ValueError("there is no reference: give one to `set_reference_module`")
        with self.no_monitor():
            return reference.run(self._reference.module, args, kwargs)

    @property
    def reference_module(self) -> nn.Module | None:
        return None if self._reference is None else self._reference.module

    @property
    def module_names(self) -> dict[nn.Module, str]:
        """The formatted name of each module of the model."""
        return {} if self._names is None else self._names.modules

    @property
    def reference_module_names(self) -> dict[nn.Module, str]:
        return {} if self._reference is None else self._reference.names.modules

    @property
    def reference_module_activations(self) -> dict[str, list[Tensor]]:
        """What modules of the reference put out in this micro-batch, call by call, if differences of it are wanted."""
        return {} if self._reference is None else self._reference.activations

    # -- steps ------------------------------------------------------------------------------------------------

    def is_step_monitored(self, step: int) -> bool:
        return self.monitor_step_fn is None or bool(self.monitor_step_fn(step))

    def is_monitoring(self) -> bool:
        """Whether what happens now is monitored."""
        return self.current_step_monitored and not self._paused

    def begin_step(self, step: int) -> bool:
        """A step begins; whether it is monitored. One that has not ended ends now.

        Raises:
            ValueError: the step is lower than the last, or it is to be monitored and there is no module.
        """
        if self.current_step is not None and step < self.current_step:
            raise ValueError(f"step {step} comes after step {self.current_step}: steps only go up")
        self.end_step()
        self.current_step = step
        if self.is_step_monitored(step):
            if self.module is None:
                raise ValueError("there is no module to monitor: give one to `set_module`")
            self.current_step_monitored = True
            self._called = False
            self._attach()
        return self.current_step_monitored

    @contextmanager
    def no_monitor(self) -> Iterator[None]:
        """What runs in here is not monitored, such as a validation. What the reference puts out is kept all the same."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def after_micro_batch(self) -> None:
        """A micro-batch is over: what the reference put out is forgotten."""
        if self._reference is not None:
            self._reference.forget()

    @own_work
    def end_step(self) -> None:
        """The step is over: its numbers are sent off, and those that have arrived go to the storage."""
        self._detach()
        self.after_micro_batch()
        self._met.clear()
        if self.is_monitoring() and self._hooks and not self._called and self._compilers.used:
            self._warn_of_compilation()  # in a function around it
        if self.current_step is not None and (self.current_step_monitored or self._tally):
            tally, self._tally = self._tally, self._new_tally()
            try:
                tally.close()
                self._pending.append((self.current_step, tally))
            except Exception as error:  # noqa: BLE001 - of the device, and the run goes on
                keep(error)
                self._failed(f"step {self.current_step}", error)
        self.current_step_monitored = False
        _hand_over(self._pending, self._storage, self.logger, wait=False)

    # -- what came of it --------------------------------------------------------------------------------------

    @property
    def storage(self) -> StorageManager:
        """The numbers of all steps that have ended; waits for those that are on their way."""
        _hand_over(self._pending, self._storage, self.logger)
        return self._storage

    def get_step_metrics(self) -> dict[str, float]:
        """The numbers of the step that has just ended, by key; nothing if it was not monitored."""
        return {} if self.current_step is None else self.storage.get_step(self.current_step)

    def get_all_metrics(self) -> dict[int, dict[str, float]]:
        """By step, of all that are in memory."""
        return self.storage.get_all()

    # -- figures of one's own ---------------------------------------------------------------------------------

    def log_scalar(
        self, key: str, value: Any, aggregation_fn: Aggregate | None = None, force: bool = False
    ) -> None:
        """A number, or a tensor of one element, which stays on its device; of several under one key their mean.

        Args:
            key: of the result.
            value: the number.
            aggregation_fn: brings several together, which it gets as a list of numbers.
            force: also in a step that is not monitored.

        Raises:
            TypeError: it is no number.
            ValueError: the tensor has more than one element.
        """
        if self.is_monitoring() or (force and self.current_step is not None):
            self._tally.log_number(key, value, aggregation_fn)

    def log_scalars(self, monitor_dict: Mapping[str, Any], force: bool = False) -> None:
        """Several, by key."""
        for key, value in monitor_dict.items():
            self.log_scalar(key, value, force=force)

    @own_work
    def log_tensor(self, key: str, tensor: Any, aggregation_fn: Aggregate | None = None) -> None:
        """A tensor, or several under one key: the mean over all elements.

        Args:
            key: of the result.
            tensor: of any shape.
            aggregation_fn: brings the elements together, which it gets as one tensor of one dimension.

        Raises:
            TypeError: it is neither a tensor nor a number.
        """
        if self.is_monitoring():
            self._tally.log(key, tensor, aggregation_fn)

    def watch_attention(self) -> Callable[[], None]:
        """Monitor each attention of a model that is not written to be; see `attention.watch_attention`.

        Returns:
            A function that ends it.
        """
        return attention.watch_attention(self)

    # -- activations ------------------------------------------------------------------------------------------

    def monitor_activations(
        self, module: str | nn.Module, activations: Any, is_reference: bool = False
    ) -> None:
        """Measure tensors as what a module puts out: for those in between, under names of one's own.

        Args:
            module: the name, or the module.
            activations: a tensor, or whatever holds tensors.
            is_reference: whether they are of the reference.

        Raises:
            ValueError: the module is no part of the model, or of the reference.
        """
        name = self._get_module_name(module, is_reference)
        if not self._is_excluded(name):
            (self._heard_of_reference if is_reference else self._heard)(name, activations)

    @own_work
    def _heard(self, name: str, output: Any) -> None:
        """A module of the model was called. What goes wrong in here must not reach the run."""
        if not self.current_step_monitored or self._paused or in_backward() or captured():
            return
        self._called = True
        try:
            if type(output) is Tensor and (wanted := self._usual.get(name)) is not None:
                self._take(wanted, output, output.detach())
                return
            for label, tensor in outputs(name, output):
                self._observe(name, label, tensor)
        except Exception as error:  # noqa: BLE001
            keep(error)
            self._failed(f"activation/{name}", error)

    @own_work
    def _heard_of_reference(self, name: str, output: Any) -> None:
        reference = self._reference
        if reference is None or self.ignore_reference_module_activations or not self.current_step_monitored:
            return
        try:
            for label, tensor in outputs(name, output):
                tensor = local(tensor.detach())
                reference.keep(label, tensor.to("cpu", copy=True) if self.cpu_offload else tensor.clone())
        except Exception as error:  # noqa: BLE001
            keep(error)
            self._failed(f"the reference's {name}", error)

    def _observe(self, name: str, label: str, output: Tensor) -> None:
        tensor = local(output.detach())
        if (wanted := self._activations.of(name, f"activation/{label}")) is not None:
            self._take(wanted, output, tensor)
        if self._reference is not None and self._activation_differences:
            wanted = self._activation_differences.of(name, f"activation_difference/{label}")
            if wanted is not None:
                self._compare(wanted, label, tensor, self._reference)

    def _take(self, wanted: Wanted, output: Tensor, tensor: Tensor) -> None:
        """A container often puts out the very tensor that its last layer did, an identity the one it got: it is measured once."""
        met, target = self._met.get(id(output)), wanted.target
        if met is not None and met[0]() is output and target is not None:
            _, version, owners = met
            if version == output._version and owners[0].needs == target.needs:
                self._tally.take_again(target, owners)
                self._tally.call(wanted, tensor)
                return
        if target is None or wanted.functions:
            measured = self._tally.take(wanted, tensor)
        else:
            measured = self._tally.measure(target, tensor)
        if measured is not None and not output.is_inference():
            self._met[id(output)] = weakref.ref(output), output._version, measured

    def _compare(self, wanted: Wanted, label: str, tensor: Tensor, reference: Reference) -> None:
        other = reference.next(label)
        if other is None:
            self._warn(
                f"reference {label}",
                f"the reference put out nothing to compare {label} with: run it on the same input before the model",
            )
        else:
            self._tally.take(wanted, tensor.to(other.device), other)

    # -- parameters and gradients -----------------------------------------------------------------------------

    @own_work
    def monitor_parameters(self) -> None:
        """Measure the parameters as they are now, and how they differ from those of the reference."""
        if not self.is_monitoring():
            return
        assert self._names is not None
        named = self._names.parameters()
        if self._parameters:
            self._take_all(self._parameters, "parameter", named, list(named.values()))
        if self._reference is not None and self._parameter_differences:
            others = self._reference.names.parameters()
            names = [name for name in named if name in others]
            pairs = ([of[name] for name in names] for of in (named, others))
            self._take_all(self._parameter_differences, "parameter_difference", names, *pairs)

    @own_work
    def monitor_gradients(self, before_clip: bool = False, of: Iterable[Tensor] | None = None) -> None:
        """Measure the gradients as they are now: after the backward pass, and before the optimizer's step.

        Args:
            before_clip: keep them apart, under `gradient_before_clip/`, from those that are measured after clipping.
            of: parameters, such as those of one optimizer of several; None for all of the model.
        """
        if self.is_monitoring() and self._gradients:
            assert self._names is not None
            named = self._names.parameters()
            if of is not None:
                chosen = set(map(id, of))
                named = {name: one for name, one in named.items() if id(one) in chosen}
            gradients = {name: one.grad for name, one in named.items() if one.grad is not None}
            kind = "gradient_before_clip" if before_clip else "gradient"
            self._take_all(self._gradients, kind, gradients, list(gradients.values()))

    def _take_all(
        self, metrics: Metrics, kind: str, names: Iterable[str], *tensors: Sequence[Tensor]
    ) -> None:
        try:
            self._tally.take_all(metrics.of_all(names, kind), tensors, self.sync)
        except Exception as error:  # noqa: BLE001
            keep(error)
            self._failed(kind, error)

    # -- hooks ------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Hooks on the modules of which something is wanted, for this step."""
        assert self._names is not None
        metrics = [self._activations]
        if self._reference is not None:
            metrics.append(self._activation_differences)
        if self._names.refresh() or self._hooks is None:
            modules = self._wanted(self._names, metrics)
            self._hooks = Hooks(modules, self._heard)
            self._usual = {
                name: wanted
                for name, _ in (modules if self._reference is None else ())
                if (wanted := self._activations.of(name, f"activation/{name}")) is not None
            }
        if self.compiled == "eager":
            if self._compilers.used:
                self._compilers.suspend()
        elif any_compiled(self._names.modules):
            self._is_left_out = True
            if self._hooks or self._companions or attention.is_watched(self):
                self._warn_of_compilation()
            return
        self._hooks.attach()
        for companion in self._companions:
            companion.attach()
        if (reference := self._reference) is not None:
            if reference.names.refresh() or self._reference_hooks is None:
                modules = self._wanted(reference.names, [self._activation_differences])
                self._reference_hooks = Hooks(modules, self._heard_of_reference)
            self._reference_hooks.attach()

    def _warn_of_compilation(self) -> None:
        self._warn(
            "compiled",
            "the model is compiled, and its activations are not seen: "
            '`compiled="eager"` runs monitored steps uncompiled',
        )

    def _detach(self) -> None:
        for hooks in (self._hooks, self._reference_hooks):
            if hooks is not None:
                hooks.detach()
        for companion in self._companions:
            companion.detach()
        self._is_left_out = False
        self._compilers.lift()

    def _rehook(self) -> None:
        """Other metrics or another reference: hooks are wanted elsewhere."""
        self._detach()
        self._hooks = self._reference_hooks = None
        if self.current_step_monitored:
            self._attach()

    def _wanted(self, names: MonitoredNames, metrics: Iterable[Metrics]) -> list[tuple[str, nn.Module]]:
        return [
            (name, module)
            for module, name in names.modules.items()
            if wrapped(module) is None  # else the one inside has its name, and puts out the same
            and any(of.matches(name) for of in metrics)
            and not self._is_excluded(name)
        ]

    def _get_module_name(self, module: str | nn.Module, is_reference: bool = False) -> str:
        if isinstance(module, str):
            return module
        names = self.reference_module_names if is_reference else self.module_names
        if module not in names:
            raise ValueError(
                f"this {type(module).__name__} is no part of the {'reference' if is_reference else 'model'}"
            )
        return names[module]

    def _is_excluded(self, module: str | nn.Module, is_reference: bool = False) -> bool:
        return self._excluded.match(self._get_module_name(module, is_reference)) is not None

    # -- what goes wrong --------------------------------------------------------------------------------------

    def _new_tally(self) -> StepMetrics:
        method = weakref.WeakMethod(self._failed)

        def failed(key: str, error: Exception) -> None:
            if (report := method()) is not None:
                report(key, error)

        return StepMetrics(failed, self._memory)

    def _failed(self, what: str, error: Exception) -> None:
        self._warn(what, f"{what} could not be measured: {type(error).__name__}: {error}")

    def _warn(self, about: str, message: str) -> None:
        """Once: what recurs in each step is no news."""
        if about not in self._warned:
            self._warned.add(about)
            self.logger.warning("step %s: %s", self.current_step, message)


def _hand_over(
    pending: list[tuple[int, StepMetrics]], storage: StorageManager, logger: logging.Logger, wait: bool = True
) -> None:
    """Give the storage the numbers of the steps that have ended, in order; without waiting, of those that have arrived."""
    while pending and (wait or pending[0][1].arrived):
        step, tally = pending.pop(0)
        try:
            values = tally.values()
        except Exception as error:  # noqa: BLE001 - of the device, and the run goes on
            keep(error)
            logger.warning("step %s: its numbers did not arrive: %s: %s", step, type(error).__name__, error)
        else:
            storage.add(step, values)
