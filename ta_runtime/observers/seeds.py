"""Sees how the global generators are seeded: before the first step, and again and again.

The functions that seed are wrapped; the state that a step finds is hashed for the first few steps after each of them.
"""

import pickle
import random
import sys
import zlib
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import torch

from ta_runtime.facts import Run, Seeding, Seeds
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.loops import outermost
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_MOST = 64  # lines that seed, and seeds of each
_CALLS = 10_000  # that are noted
_STARTS = 8  # steps after each line
SMALL = 1 << 32
"""A generator that nobody seeds starts from 64 random bits of the system (c10, `getNonDeterministicRandom`): one of fewer
was given its seed."""


class SeedWatch(Observer):
    """Watches `torch.manual_seed`, `random.seed` and `numpy.random.seed`."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._seedings: dict[tuple[str, Place], Seeding] = {}
        self._waiting: dict[str, tuple[Seeding, int]] = {}  # for the next step, by generator
        self._optimizers: Register[int] = Register()
        self._numbers = count()
        self._calls = 0
        self._seeded = False
        self._seeds = Seeds()
        self._numpy = False

    def seed_torch(self, call: Call) -> End:
        return partial(self._seeded_by, "torch")

    def seed_python(self, call: Call) -> End:
        return partial(self._seeded_by, "random")

    def begin(self, window: "Window") -> None:
        if not self._numpy and "numpy.random" in sys.modules:
            self._numpy = True
            seeded = partial(self._seeded_by, "numpy")
            self._listen("seed_numpy", lambda call: seeded)

    @property
    def settled(self) -> bool:
        return not self._waiting

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if self._seeds.started is None:
            seed = torch.initial_seed()
            self._seeds.seed = seed if self._seeded or seed < SMALL else None
            self._seeds.started = outermost()
        while self._waiting:
            generator, (seeding, left) = self._waiting.popitem()
            number = self._optimizers.get(optimizer)
            if number is None:
                number = next(self._numbers)
                self._optimizers.add(optimizer, number)
            seeding.starts.append((number, left, _state(generator)))

    def report(self, run: Run) -> None:
        run.seedings = list(self._seedings.values())
        run.seeds = self._seeds

    def _seeded_by(self, generator: str, call: Call) -> None:
        if not call.raised:
            self._note(generator, *call.args, *call.kwargs.values())

    def _note(self, generator: str, value: object = None, *_: object) -> None:
        self._calls += 1
        self._seeded |= generator == "torch"
        if self._calls > _CALLS or value is None or not torch.is_grad_enabled():
            return
        place = here()
        seeding = self._seedings.get((generator, place))
        if seeding is None:
            if len(self._seedings) == _MOST:
                return
            seeding = self._seedings[generator, place] = Seeding(generator, place)
        seeding.calls += 1
        if len(seeding.values) < _MOST:
            seeding.values.add(str(value))
        waiting = self._waiting.get(generator)
        if len(seeding.starts) < _STARTS and (waiting is None or waiting[0] is not seeding):
            self._waiting[generator] = seeding, _state(generator)


def _state(generator: str) -> int:
    """A hash of the state of a global generator, of torch's those of the devices in use too. Reading changes none."""
    if generator == "random":
        return hash(random.getstate())
    if generator == "numpy":
        return zlib.crc32(pickle.dumps(sys.modules["numpy.random"].get_state(legacy=False)))
    state = zlib.crc32(torch.default_generator.get_state().numpy().data)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for on_device in torch.cuda.default_generators:
            state = zlib.crc32(on_device.get_state().numpy().data, state)
    return state
