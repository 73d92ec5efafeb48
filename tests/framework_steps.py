"""The order of a training step: what a framework does between two steps of an optimizer, dry and for real.

In a framework the lines are in the library, so the order is held without them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.events.event import Event

REAL = Path(__file__).with_name("framework_actions.py")
SHOWN = {
    "forward": "forward", "backward": "backward", "clip": "clip", "stepped": "step", "clear": "clear", "schedule": "schedule", "train": "train", "eval": "eval",
}  # fmt: skip
LONGEST = 4
"""Of what may happen again at once, in words."""
Step = tuple[str, ...]


def real_steps(real: dict[str, Any]) -> Counter[Step]:
    """How often each order of a step happened."""
    return Counter(_split(_real_words(real)))


def _real_words(real: dict[str, Any]) -> Iterator[str]:
    for action, _, known in real["actions"]:
        if action == "forward" and not known["recording"]:
            yield "forward without a graph"
        elif action in SHOWN:
            yield SHOWN[action]


def dry_steps(machine: Machine) -> dict[Step, bool]:
    """The orders that a dry run says, each with whether all of it is certain."""
    said: dict[Step, bool] = {}
    words: list[tuple[str, bool]] = []
    for event in _again(machine.events, 0):
        word = "step" if event.action == "step" else SHOWN.get(event.action)
        if event.action == "forward" and event.detail["recording"] is not True:
            word = "forward without a graph"
        if word is not None:
            words.append((word, event.certain))
        if word == "step":
            certain = [one for one, sure in words if sure]
            for happens in ([one for one, _ in words], certain):
                for step in _split(happens):
                    said[step] = said.get(step, False) or len(certain) == len(words)
            words = []
    return said


def _again(events: list[Event], depth: int) -> Iterator[Event]:
    """The events, those in the second pass of a loop twice: it stands for the later ones, so it comes after itself as well."""
    for now, group in groupby(events, lambda event: event.passes[depth] if depth < len(event.passes) else None):
        inner = list(group) if now is None else list(_again(list(group), depth + 1))
        yield from inner
        if now is not None and now[1] == 1:
            yield from inner


def _split(words: Iterable[str]) -> Iterator[Step]:
    """What happens up to each step. What happens again at once counts once: layers of a model, batches that are accumulated."""
    step: list[str] = []
    for word in words:
        step.append(word)
        for length in range(1, LONGEST + 1):
            if step[-length:] == step[-2 * length : -length]:
                del step[-length:]
        if word == "step":
            yield tuple(step)
            step = []
