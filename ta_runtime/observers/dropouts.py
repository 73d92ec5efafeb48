"""Sees the functions that drop values, called from the code of a module, while it is attached.

The dropout layers hand over their own mode; a function knows none but what it is given.
"""

import re
from types import FrameType
from typing import TYPE_CHECKING

from torch import nn

from ta_runtime.facts import Dropping
from ta_runtime.facts.mode import ATTENTION
from ta_runtime.probes import hub
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place, caller, here, is_library
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_OFF_BY_DEFAULT = frozenset({"alpha_dropout", "feature_alpha_dropout"})
_DEFAULT = 0.5
_FAR = 12  # frames from a function to the method of the module that it works for
_MOST = 256  # lines

# Code that is random on purpose, by its name.
_RANDOM = re.compile(
    r"train|augment|perturb|corrupt|mc_|_mc|monte|sample|bayes|stochastic|uncertain", re.IGNORECASE
)


class Dropouts:
    """Notes what is dropped, by line."""

    def __init__(self, session: "Context") -> None:
        self.found: dict[Place, Dropping] = {}
        self._undo = Undo()
        self._run = session.barrier.run

    def attach(self) -> None:
        self._undo.append(hub.watch("attend", self._attends, self._run))
        self._undo.append(hub.watch("drop", self._drops, self._run))

    def detach(self) -> None:
        self._undo()

    def _drops(self, call: Call) -> None:
        frame, name = caller(), call.function.__name__
        if not is_library(frame.f_code.co_filename):
            told = len(call.args) > 2 or "training" in call.kwargs
            training = call.given(2, "training", name not in _OFF_BY_DEFAULT)
            self._note(name, frame, float(call.given(1, "p", _DEFAULT)), told, bool(training))

    def _attends(self, call: Call) -> None:
        frame = caller()
        if not is_library(frame.f_code.co_filename):
            self._note(ATTENTION, frame, float(call.given(4, "dropout_p", 0.0)), True, True)

    def _note(self, function: str, frame: FrameType, p: float, told: bool, training: bool) -> None:
        module = _module(frame)
        if module is None or _RANDOM.search(frame.f_code.co_name) or _RANDOM.search(type(module).__name__):
            return
        place = here()
        dropping = self.found.get(place)
        if dropping is None:
            if len(self.found) == _MOST:
                return
            dropping = self.found[place] = Dropping(place, function, told)
        dropping.p = max(dropping.p, p)
        if not module.training:
            dropping.evaluating += 1
            dropping.dropped += training and p > 0
        elif p > 0:
            dropping.training += 1
            dropping.kept += not training


def _module(frame: FrameType) -> nn.Module | None:
    """The module in whose method a function is called, or on whose behalf."""
    above: FrameType | None = frame
    for _ in range(_FAR):
        if above is None:
            break
        owner = above.f_locals.get("self")
        if isinstance(owner, nn.Module):
            return owner
        above = above.f_back
    return None
