"""Sees averages that are moved in place, a little with every step, and whether those in half precision move at all.

On thorough steps, outside of `optimizer.step()`, it watches `lerp_` and a multiplication by a decay with the addition after it.
A few elements of an average are kept until it is next updated in such a step.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import SlowAverage
from ta_runtime.measure.kinds import HALF, measurable
from ta_runtime.measure.memory import address
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_PLAIN = (Tensor, nn.Parameter)
_SLOWEST = 0.99
"""Decays from this one on; a faster average moves in half precision too."""
_STEPS = 12  # that are looked at
_TENSORS = 8  # of one line
_ELEMENTS = 256  # of a tensor
_CLEARLY = 4  # steps of a number to the next


@dataclass(slots=True)
class _Seen:
    """Elements of an average when it was last looked at."""

    step: int
    elements: Tensor


class SlowAverages(Observer):
    """Watches what moves averages."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._found: dict[Place, SlowAverage] = {}
        self._seen: dict[tuple[Place, int, torch.Size], _Seen] = {}
        self._decays: dict[int, float] = {}  # by address, of what was multiplied last
        self._steps = 0

    def begin(self, window: "Window") -> None:
        self.detach()
        if window.thorough and self._steps < _STEPS and not self.session.compilers.used:
            self._listen("average", self._begun)

    def detach(self) -> None:
        super().detach()
        self._steps += bool(self._decays)
        self._decays = {}

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self.detach()  # the averages that an optimizer keeps are its own affair

    def report(self, run: "Run") -> None:
        run.slow_averages = list(self._found.values())

    def _begun(self, call: Call) -> End | None:
        average, name = call.args[0], call.function.__name__
        if name == "_foreach_lerp_":
            weight = call.given(2, "weight")
            for one, other in zip(average, call.given(1, "tensors1") or (), strict=False):
                self._mix(one, other, weight)
        elif type(average) in _PLAIN and average.is_floating_point() and not average.is_meta:
            if name in ("mul_", "__imul__"):
                self._note_decay(average, call.given(1, "other"))
            elif name == "lerp_":
                self._mix(average, call.given(1, "end"), call.given(2, "weight"))
            elif (decay := self._decays.get(address(average))) is not None:
                self._add(average, call.given(1, "other"), call.kwargs.get("alpha", 1), decay)
        return None

    def _note_decay(self, average: Tensor, factor: Any) -> None:
        if isinstance(factor, float) and _SLOWEST <= factor < 1:
            self._decays[address(average)] = factor

    def _add(self, average: Tensor, other: Any, alpha: Any, decay: float) -> None:
        if not isinstance(alpha, (int, float)):
            return
        if alpha == 1:
            self._look(average, other, decay, 1 / (1 - decay))
        elif abs(alpha - (1 - decay)) < 0.01 * (1 - decay):
            self._look(average, other, decay, 1.0)

    def _mix(self, average: Any, end: Any, weight: Any) -> None:
        if type(average) in _PLAIN and isinstance(weight, float) and 0 < weight <= 1 - _SLOWEST + 1e-9:
            self._decays[address(average)] = 1 - weight
            self._look(average, end, 1 - weight, 1.0)

    @torch.no_grad()
    def _look(self, average: Tensor, other: Any, decay: float, scale: float) -> None:
        if type(other) not in _PLAIN or other.shape != average.shape or not average.numel():
            return
        place, step = here(), self.session.window.index
        found = self._found.setdefault(place, SlowAverage(place))
        if average.dtype not in HALF:
            found.precise += 1
            return
        key = (place, address(average), average.shape)
        before = self._seen.get(key)
        if not (measurable(average) and measurable(other)) or average.device != other.device:
            return
        if (before is not None and before.step == step) or (before is None and found.looks):
            return
        if before is None and sum(known[0] == place for known in self._seen) == _TENSORS:
            return
        found.dtype, found.decay = found.dtype or str(average.dtype).removeprefix("torch."), decay
        now = average.detach().reshape(-1)[:_ELEMENTS].clone()
        self._seen[key] = _Seen(step, now)
        if before is None or before.elements.dtype is not now.dtype:
            return
        value, goal = now.float(), other.detach().reshape(-1)[:_ELEMENTS].float() * scale
        differs = (goal - value).abs() > _CLEARLY * torch.finfo(now.dtype).eps * value.abs()
        moved = differs & (now != before.elements)

        def deliver(values: list[float]) -> None:
            found.looks += 1
            found.differing += values[0]
            found.moved += values[1]

        numbers = [differs.sum(dtype=torch.float32), moved.sum(dtype=torch.float32)]
        self.session.window.readings.scalars(numbers, deliver)
