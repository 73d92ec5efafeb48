"""The module that the monitored one is compared with, such as itself at initialisation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ta_runtime.monitor.names import MonitoredNames


class Reference:
    """A reference with what it put out in this micro-batch, call by call: the model's nth call is compared with its nth."""

    def __init__(self, module: nn.Module, names: MonitoredNames) -> None:
        self.module = module
        self.names = names
        self.activations: dict[str, list[Tensor]] = {}
        self._compared: dict[str, int] = {}

    def keep(self, name: str, tensor: Tensor) -> None:
        """A copy, as what comes next may work in place."""
        self.activations.setdefault(name, []).append(tensor)

    def next(self, name: str) -> Tensor | None:
        """What the model's next output of this name is compared with; None if the reference did not run as often."""
        index = self._compared.get(name, 0)
        self._compared[name] = index + 1
        calls = self.activations.get(name, ())
        return calls[index] if index < len(calls) else None

    def forget(self) -> None:
        """The micro-batch is over."""
        self.activations = {}
        self._compared = {}


def run(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A forward pass of which nothing is left: no graph, no random number drawn, no buffer written."""
    with torch.no_grad(), _same_numbers(module), _same_buffers(module):
        return module(*args, **kwargs)


@contextmanager
def _same_numbers(module: nn.Module) -> Iterator[None]:
    """torch's generators, of the CPU and the accelerators in use, go on as if nothing had been drawn."""
    devices = {tensor.device for tensor in module.parameters()} - {torch.device("cpu"), torch.device("meta")}
    if not devices:
        with torch.random.fork_rng(devices=[]):
            yield
        return
    kind = next(iter(devices)).type
    indices = [device.index or 0 for device in devices]
    with torch.random.fork_rng(devices=indices, device_type=kind):
        yield


@contextmanager
def _same_buffers(module: nn.Module) -> Iterator[None]:
    saved = [
        (owner, name, buffer, buffer.clone())
        for owner in module.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for owner, name, buffer, values in saved:
            owner._buffers[name] = buffer
            buffer.copy_(values)
