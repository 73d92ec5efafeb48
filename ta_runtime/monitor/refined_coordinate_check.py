"""The refined coordinate check: how much activations change by the weights of a module, and how much by its inputs.

A module puts out W_t x_t, and its reference, usually the model at initialisation, W_0 x_0. By running the reference on
x_t as well, the change falls into (W_t - W_0) x_t, what the updates of this module did, and W_0 (x_t - x_0), what those
of the modules before it did: Haas et al. (2025), "On the Surprising Effectiveness of Large Learning Rates under
Standard Width Scaling", arXiv:2505.22491.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from ta_runtime.faults import keep
from ta_runtime.measure.tree import tensors
from ta_runtime.monitor.monitor import ModuleMonitor
from ta_runtime.monitor.names import ROOT, outputs
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.module_hooks import CallHook
from ta_runtime.probes.modules import around
from ta_runtime.probes.undo import Undo
from ta_runtime.probes.work import own_work


def l2_norm(tensor: Tensor) -> Tensor:
    """The L2 norm over the last dimension, of which the check logs the mean."""
    norm: Tensor = torch.linalg.vector_norm(tensor, dim=-1)
    return norm


class RefinedCoordinateCheck:
    """Compares the modules of a monitored model with those of its reference.

        check = RefinedCoordinateCheck(monitor)
        ...
        monitor.begin_step(step)
        monitor.run_reference(inputs)
        outputs = model(inputs)
        check.refined_coordinate_check()

    What each module is given and puts out in a monitored step is copied, as code that follows may write to it, and kept
    until the check or the next such step.

    Raises:
        ValueError: the monitor has no module, or no reference.
    """

    def __init__(self, monitor: ModuleMonitor) -> None:
        if monitor.module is None:
            raise ValueError("set the module to monitor before the refined coordinate check")
        if monitor.reference_module is None:
            raise ValueError("set the reference of the monitor before the refined coordinate check")
        self.monitor = monitor
        self._modules = {name: module for module, name in monitor.module_names.items()}
        self._references = {name: module for module, name in monitor.reference_module_names.items()}
        self._calls = _Calls(monitor, self._modules, monitor.is_monitoring)
        self._reference_calls = _Calls(
            monitor,
            self._references,
            lambda: monitor.current_step_monitored and not monitor.ignore_reference_module_activations,
        )

    @property
    def module(self) -> nn.Module | None:
        """The model that the monitor watches."""
        return self.monitor.module

    @property
    def reference_module(self) -> nn.Module | None:
        """The model that it is compared with."""
        return self.monitor.reference_module

    @own_work
    def refined_coordinate_check(self) -> None:
        """Log what has run in this step since the last check: norms over the last dimension, and of these the mean.

        Call it after the forward passes of the reference and of the model, which must be in the same mode. In the keys,
        `{m}` is each module that ran but the model itself, and in the first two also `{m}[0]` or the like, one of
        several tensors that it put out:

        - `RCC (W_t-W_0)x_t/{m}/l2norm` and, but for embeddings, `RCC W_0(x_t-x_0)/{m}/l2norm`;
        - `RCC x_t/{m}/l2norm` and `RCC (x_t-x_0)/{m}/l2norm`, where the first input is a floating-point tensor;
        - of linear layers and layer norms the same without biases, `RCC (W_t-W_0)x_t/{m}.weight/l2norm` and
          `RCC W_0(x_t-x_0)/{m}.weight/l2norm`, beside `.../W_t x_t/l2norm` and `.../W_0 x_0/l2norm`;
        - of layer norms also what their weights are given, normalised: `RCC (W_t-W_0)x_t/{m}.weight/x_t/l2norm` and
          `RCC W_0(x_t-x_0)/{m}.weight/x_t-x_0/l2norm`.

        Each module of the reference runs once more, as its counterpart did: in its mode, under its autocast and with
        its random numbers, so that dropout drops the same, and equal weights give no difference. The reference's
        buffers and modes and all generators are afterwards as they were. Outside of a monitored step nothing happens.

        Raises:
            ValueError: the model or the reference has not run in this step.
        """
        monitor = self.monitor
        if not monitor.is_monitoring() or monitor._is_left_out:
            return
        calls, others = self._calls.take("model"), self._reference_calls.take("reference")
        with torch.no_grad(), self._replaying():
            for name, made in calls.items():
                compared = others.get(name, [])
                if len(made) != len(compared):
                    monitor._warn(
                        f"refined coordinate check of {name}",
                        f"no refined coordinate check of {name}: it ran {len(made)} times in the model and "
                        f"{len(compared)} times in the reference",
                    )
                    continue
                for call, other in zip(made, compared, strict=True):
                    self._check(name, call, other)

    def _check(self, name: str, call: "_Call", other: "_Call") -> None:
        try:
            again = partial(self._again, name, call)
            for key, tensor in _terms(name, self._modules[name], call, other, again):
                if tensor is not None:
                    self.monitor.log_tensor(f"RCC {key}/l2norm", l2_norm(tensor))
        except Exception as error:  # noqa: BLE001 - of a module that cannot run by itself; the training goes on
            keep(error)
            self.monitor._failed(f"the refined coordinate check of {name}", error)

    def _again(self, name: str, call: "_Call") -> dict[str, Tensor]:
        """What the reference puts out for a call of its counterpart. Nothing of it stays, or is logged."""
        reference = self._references[name]

        def there(value: Any) -> Any:
            return value.to(call.device) if isinstance(value, Tensor) else _mapped(there, value)

        buffers = {path: buffer.clone() for path, buffer in reference.named_buffers()}
        enabled, dtype = call.autocast
        before = _generators(call.device)
        _restore(call.generators, call.device)
        try:
            with self.monitor.no_monitor(), torch.autocast(call.device.type, dtype, enabled):
                output = functional_call(reference, buffers, there(call.args), there(call.kwargs))
        finally:
            _restore(before, call.device)
        return dict(outputs(name, output))

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        """Modules of the reference run unheard, in the modes of the model's; their own modes come back after it."""
        modes = {module: module.training for module in self._references.values()}
        ignoring = self.monitor.ignore_reference_module_activations
        self.monitor.ignore_reference_module_activations = True
        try:
            for name, module in self._references.items():
                module.training = self._modules[name].training
            yield
        finally:
            self.monitor.ignore_reference_module_activations = ignoring
            for module, training in modes.items():
                module.training = training


@dataclass(slots=True)
class _Call:
    """A module's call. Tensors are copies."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    device: torch.device
    generators: list[Tensor]
    autocast: tuple[bool, torch.dtype]
    outputs: dict[str, Tensor] = field(default_factory=dict)
    bias: Tensor | None = None
    """That of the moment: an optimizer may have moved it since, and a sharded one is whole only now."""

    @property
    def input(self) -> Any:
        """What is called x: the first argument."""
        return next(iter((*self.args, *self.kwargs.values())), None)


class _Calls:
    """What the modules of one model are given and put out, in the order of calls; only of the current step."""

    def __init__(
        self, monitor: ModuleMonitor, modules: dict[str, nn.Module], heard: Callable[[], bool]
    ) -> None:
        self._monitor = monitor
        self._heard = heard
        self._step: int | None = None
        self._made: dict[str, list[_Call]] = {}
        self._open: list[tuple[nn.Module, _Call]] = []
        self._hooks = [
            (module, CallHook(name, self._called), CallHook(name, self._returned))
            for name, module in modules.items()
            if name != ROOT and not monitor._is_excluded(name)
        ]
        self._attached = Undo()
        weakref.finalize(self, self._attached)
        monitor._companions.add(self)
        if monitor.current_step_monitored:
            self.attach()

    def attach(self) -> None:
        """A monitored step begins."""
        for module, called, returned in self._hooks:
            self._attached.append(around(module, called, returned))

    def detach(self) -> None:
        """It is over."""
        self._attached()

    def take(self, who: str) -> dict[str, list[_Call]]:
        """All calls of this step that were not taken before, by the names of the modules.

        Raises:
            ValueError: there are none.
        """
        made, self._made, self._open = self._made, {}, []
        if not made or self._step != self._monitor.current_step:
            raise ValueError(
                f"the refined coordinate check saw no forward pass of the {who} in step {self._monitor.current_step}: "
                'run it after `begin_step`; if it is compiled, make the monitor with `compiled="eager"`'
            )
        return made

    @own_work
    def _called(self, name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._heard() or in_backward():
            return
        if self._step != self._monitor.current_step:
            self._step, self._made, self._open = self._monitor.current_step, {}, []
        try:
            device = next((tensor.device for _, tensor in tensors((args, kwargs))), torch.device("cpu"))
            autocast = torch.is_autocast_enabled(device.type), torch.get_autocast_dtype(device.type)
            call = _Call(self._copied(args), self._copied(kwargs), device, _generators(device), autocast)
            self._open.append((module, call))
        except Exception as error:  # noqa: BLE001 - such as memory that is full; the training goes on
            keep(error)
            self._monitor._failed(f"the input of {name}", error)

    @own_work
    def _returned(self, name: str, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        while self._open:  # those above it have ended by an exception
            opened, call = self._open.pop()
            if opened is module:
                break
        else:
            return
        try:
            call.outputs = {label: self._copied(tensor) for label, tensor in outputs(name, output)}
            if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
                call.bias = module.bias.detach().clone()
            self._made.setdefault(name, []).append(call)
        except Exception as error:  # noqa: BLE001
            keep(error)
            self._monitor._failed(f"the output of {name}", error)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return (
                value.detach().to("cpu", copy=True) if self._monitor.cpu_offload else value.detach().clone()
            )
        return _mapped(self._copied, value)


def _terms(
    name: str, module: nn.Module, call: _Call, other: _Call, again: Callable[[], dict[str, Tensor]]
) -> Iterator[tuple[str, Tensor | None]]:
    """What norms are logged of, by the middle of its key; None where two tensors cannot be compared."""
    device = call.device
    x_t, x_0 = _wide(call.input, device), _wide(other.input, device)
    if not isinstance(module, nn.Embedding):
        yield f"x_t/{name}", x_t
        yield f"(x_t-x_0)/{name}", _difference(x_t, x_0)
    if isinstance(module, nn.LayerNorm):
        normal_t, normal_0 = _normalised(module, x_t), _normalised(module, x_0)
        yield f"(W_t-W_0)x_t/{name}.weight/x_t", normal_t
        yield f"W_0(x_t-x_0)/{name}.weight/x_t-x_0", _difference(normal_t, normal_0)
    mixed = again()  # after those: it may write to x_t
    for label, output in call.outputs.items():
        w_t_x_t, w_0_x_0 = _wide(output, device), _wide(other.outputs.get(label), device)
        w_0_x_t = _wide(mixed.get(label), device)
        yield f"(W_t-W_0)x_t/{label}", _difference(w_t_x_t, w_0_x_t)
        if not isinstance(module, nn.Embedding):
            yield f"W_0(x_t-x_0)/{label}", _difference(w_0_x_t, w_0_x_0)
        if isinstance(module, nn.Linear | nn.LayerNorm):
            free_t, free_0 = _without(w_t_x_t, call.bias), _without(w_0_x_0, other.bias)
            free_mixed = _without(w_0_x_t, other.bias)
            yield f"(W_t-W_0)x_t/{name}.weight", _difference(free_t, free_mixed)
            yield f"W_0(x_t-x_0)/{name}.weight", _difference(free_mixed, free_0)
            yield f"(W_t-W_0)x_t/{name}.weight/W_t x_t", free_t
            yield f"W_0(x_t-x_0)/{name}.weight/W_0 x_0", free_0


def _wide(tensor: Any, device: torch.device) -> Tensor | None:
    """In single precision at least, as differences of half precision have few digits; None of what has no norm."""
    if not isinstance(tensor, Tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    return tensor.to(device, torch.promote_types(tensor.dtype, torch.float32))


def _difference(tensor: Tensor | None, other: Tensor | None) -> Tensor | None:
    """None also if they differ in shape, as those of experts do, to which tokens are routed."""
    if tensor is None or other is None or tensor.shape != other.shape:
        return None
    return tensor - other


def _without(output: Tensor | None, bias: Tensor | None) -> Tensor | None:
    return output if output is None or bias is None else output - bias


def _normalised(norm: nn.LayerNorm, tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else functional.layer_norm(tensor, norm.normalized_shape, eps=norm.eps)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Containers of what the function makes of what they hold; anything else as it is."""
    if isinstance(value, dict) and type(value) is dict:
        return {key: function(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(function, value))
    if type(value) in (list, tuple):
        return type(value)(map(function, value))
    return value


def _generators(device: torch.device) -> list[Tensor]:
    """The states of the generators that a module there draws from. That of an accelerator is kept on the host."""
    states = [torch.get_rng_state()]
    if device.type == "mps":
        states.append(torch.mps.get_rng_state())
    elif device.type not in ("cpu", "meta"):
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def _restore(states: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type == "mps":
        torch.mps.set_rng_state(states[1])
    elif len(states) > 1:
        torch.get_device_module(device).set_rng_state(states[1], device)
