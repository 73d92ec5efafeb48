"""Compares what a parameter of empty memory holds when it is registered and before the first step.

Only for parameters whose statement says `torch.empty` or its kin: a copy of each is kept until then.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ta_runtime.facts import Content
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place
from ta_runtime.probes.registers import Register
from ta_runtime.probes.sources import of_attribute, text

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.window import Window

_EMPTY = re.compile(r"Parameter\(\s*(?:data\s*=\s*)?(?:\w+\.)*(?:empty|Tensor|FloatTensor)\(")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A parameter as it was registered."""

    values: Tensor
    version: int
    place: Place
    name: str


class UninitialisedMemory(Observer):
    """Watches the registration of parameters."""

    def attach(self) -> None:
        self._kept: Register[_Kept] = Register()
        self._contents: dict[Place, Content] = {}
        if "TA414" in self.session.settings.rules:
            self._listen("register_parameter", self._note)

    def report(self, run: "Run") -> None:
        run.contents = list(self._contents.values())

    @torch.no_grad()
    def _note(self, call: Call) -> None:
        kind, name, parameter = type(call.args[0]), call.given(1, "name"), call.given(2, "param")
        if parameter is None or parameter in self._kept or kind.__module__.startswith("torch."):
            return
        place = of_attribute(kind, name)
        if place is None or not _EMPTY.search(text(place)) or not measurable(local(parameter)):
            return
        values = local(parameter.detach()).clone()
        self._kept.add(parameter, _Kept(values, parameter._version, place, name))

    @property
    def settled(self) -> bool:
        return not len(self._kept)

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if not len(self._kept):
            return
        kept, self._kept = self._kept, Register()  # the step writes to what is held
        if window.step is None:
            return
        for forward in window.step.training_forwards:
            for parameter in forward.model.module.parameters():
                if (entry := kept.get(parameter)) is not None and entry.place not in self._contents:
                    self._compare(parameter, entry, window)

    @torch.no_grad()
    def _compare(self, parameter: nn.Parameter, kept: _Kept, window: "Window") -> None:
        now = local(parameter.detach())
        before = kept.values.to(now.device, now.dtype)
        if before.shape != now.shape or not measurable(now):
            return
        both_nan = before.isnan() & now.isnan()
        content = Content(kept.place, kept.name, now.numel(), parameter._version != kept.version)
        self._contents[kept.place] = content

        def deliver(values: list[float]) -> None:
            content.changed, content.filled = map(int, values)

        counts = [torch.count_nonzero((before != now) & ~both_nan), torch.count_nonzero(before)]
        window.readings.scalars([count.float() for count in counts], deliver)
