"""Sees what trainers for reinforcement learning log of their rewards: numbers that they have read from the device already."""

import sys
from typing import TYPE_CHECKING

from ta_runtime.facts import RewardSpread
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.logs import TRAINERS
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_RULE = "TA670"
_SHARE = "frac_reward_zero_std"
"""What GRPOTrainer, RLOOTrainer and those that derive from them call it (TRL 1.16)."""
_TRAININGS = 16


class Rewards(Observer):
    """Watches the log of trainers, from when the run has loaded them: before a first step they log nothing."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._waiting = _RULE in session.settings.rules
        self._found: dict[tuple[Place, int], RewardSpread] = {}

    def begin(self, window: "Window") -> None:
        if self._waiting and TRAINERS in sys.modules:
            self._waiting = False
            self._listen("log", self._logs)

    def report(self, run: "Run") -> None:
        run.rewards = list(self._found.values())

    def _logs(self, call: Call) -> None:
        logs = call.given(1, "logs")
        share = logs.get(_SHARE) if isinstance(logs, dict) else None
        if not isinstance(share, float):
            return
        trainer = call.args[0]
        training = (
            self.session.optimizers.place,
            id(trainer),
        )  # not `here`: a trainer may have a `log` of its own
        if training not in self._found and len(self._found) < _TRAININGS:
            self._found[training] = RewardSpread(training[0], type(trainer).__name__)
        if (found := self._found.get(training)) is not None:
            found.add(trainer.state.global_step, share)
