"""Laws of calls: what the layers compute with, and in which order a loop calls what it calls."""

import json
from collections.abc import Iterator
from functools import lru_cache

from ta_runtime.invariants.laws.law import SCALER, SCHEDULERS, Breach, Law, steps
from ta_runtime.invariants.words import quoted
from ta_runtime.trace.event import Event, Flag

_AUTOCAST, _TRAINING = int(Flag.AUTOCAST), int(Flag.TRAINING)
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")


class AutocastLowers(Law):
    """Of the layers whose operations autocast casts on every device."""

    name = "autocast-lowers"
    says = "linear layers and convolutions under autocast do not compute in float32"
    wanted = frozenset(("module", f"torch.nn.{kind}") for kind in ("Linear", "Conv1d", "Conv2d", "Conv3d"))

    def see(self, event: Event) -> Iterator[Breach]:
        if event.flags & _AUTOCAST and event.dtype:
            self.is_tested = True
            if event.dtype == "float32":
                yield Breach(
                    event,
                    f"a {quoted(event.name)} computes in float32 under autocast",
                    {"first": event.subject},
                )


class AttentionKeepsAll(Law):
    """Inside of a module, whose mode says whether it evaluates."""

    name = "attention-keeps-all"
    says = "attention inside of a module in evaluation mode drops nothing"
    wanted = frozenset({("op", _ATTENTION)})

    def see(self, event: Event) -> Iterator[Breach]:
        if event.parent >= 0 and not event.flags & _TRAINING:
            self.is_tested = True
            if rate := _dropout(event.arguments):
                message = f"{quoted(_ATTENTION)} drops weights in a module in evaluation mode"
                yield Breach(event, message, {"dropout_p": rate})


class UnscaledBeforeClip(Law):
    """Where the scaler takes the scale off itself, in its step, what was clipped was too large by the scale."""

    name = "unscaled-before-clipped"
    says = "gradients that a scaler has scaled are unscaled before they are clipped"
    wanted = frozenset(
        {("loop", f"{SCALER}{method}") for method in ("scale", "unscale_", "update")}
    ) | frozenset(("loop", clip) for clip in _CLIPS)

    def __init__(self) -> None:
        super().__init__()
        self._is_scaled = self._is_unscaled = False

    def see(self, event: Event) -> Iterator[Breach]:
        if event.name == f"{SCALER}scale":
            self._is_scaled = True
        elif event.name == f"{SCALER}unscale_":
            self._is_unscaled = True
        elif event.name == f"{SCALER}update":
            self._is_scaled = self._is_unscaled = False
        elif event.name in _CLIPS and self._is_scaled:
            self.is_tested = True
            if not self._is_unscaled:
                yield Breach(event, f"{quoted(event.name)} clips gradients that are still scaled", {})


class ScheduleFollows(Law):
    """In the loop, not in what goes before it: a run that is taken up again may step its schedule to where it was."""

    name = "schedule-follows"
    says = "no schedule steps in the loop before an optimizer has stepped"
    wanted = frozenset({("loop", "")})

    def __init__(self) -> None:
        super().__init__()
        self._has_stepped = False

    def see(self, event: Event) -> Iterator[Breach]:
        if steps(event) or event.name == f"{SCALER}step":
            self._has_stepped = True
        elif event.name.startswith(SCHEDULERS) and event.name.endswith(".step") and event.phase != "setup":
            self.is_tested = True
            if not self._has_stepped:
                yield Breach(event, f"{quoted(event.name)} is called before any optimizer has stepped", {})


@lru_cache(maxsize=256)
def _dropout(arguments: str) -> float:
    rate = json.loads(arguments).get("dropout_p", 0.0) if arguments else 0.0
    return float(rate) if isinstance(rate, (int, float)) else 0.0
