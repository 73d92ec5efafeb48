"""Sees the functions that drop values, called from the code of a module, while it is attached.

The dropout layers hand over their own mode; a function knows none but what it is given.
"""

import re
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ta_runtime.facts import Dropping
from ta_runtime.facts.mode import ATTENTION
from ta_runtime.observers.patching import Shared, Undo, from_its_line, standing_in
from ta_runtime.places import Place, caller, here, is_library

if TYPE_CHECKING:
    from ta_runtime.session import Session

_FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
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

    def __init__(self, session: "Session") -> None:
        self.found: dict[Place, Dropping] = {}
        self.note = session.guarded(self._note)

    def attach(self) -> None:
        _attached.join(self)

    def detach(self) -> None:
        _attached.leave(self)

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


def _put_on(undo: Undo) -> None:
    undo.patch(nn.functional, ATTENTION, _attention)
    for name in _FUNCTIONS:
        function = getattr(nn.functional, name)
        if function.__module__ == nn.functional.__name__ and not function.__closure__:
            undo.recode(function, _function)


_attached: Shared[Dropouts] = Shared(_put_on)


def _function(original: Callable[..., Any]) -> Callable[..., Any]:
    name = original.__name__
    default = name not in _OFF_BY_DEFAULT

    def observed(*args: Any, **kwargs: Any) -> Any:
        frame = caller()
        if _attached and not torch.compiler.is_compiling() and not is_library(frame.f_code.co_filename):
            p = args[1] if len(args) > 1 else kwargs.get("p", _DEFAULT)
            told = len(args) > 2 or "training" in kwargs
            training = args[2] if len(args) > 2 else kwargs.get("training", default)
            for dropouts in _attached:
                dropouts.note(name, frame, float(p), told, bool(training))
        return original(*args, **kwargs)

    return observed


@cache
def _attention(original: Callable[..., Any]) -> Callable[..., Any]:
    return standing_in(original, _observed_attention)


def _observed_attention(original: Callable[..., Any]) -> Callable[..., Any]:
    call = from_its_line(original)

    def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
        frame = caller()
        if _attached and not torch.compiler.is_compiling() and not is_library(frame.f_code.co_filename):
            p = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
            for dropouts in _attached:
                dropouts.note(ATTENTION, frame, float(p), True, True)
        return call(*args, **kwargs)

    return scaled_dot_product_attention


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
