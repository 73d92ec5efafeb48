"""What a run was set to, in words: its command, commit, optimizers, batch size, seed, device and ranks."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from ta_runtime.coverage import Coverage
from ta_runtime.report.words import counted, number, size
from ta_runtime.runs import Run
from ta_runtime.runs.command import typed
from ta_runtime.runs.trackers import is_web

_OPTIMIZER = "optimizer"
_SEVERAL = 3
"""Values of a setting that are shown, of the groups of an optimizer."""
_OF_GROUPS = ("elements", "initial_lr", "name", "decoupled_weight_decay")
"""What is no setting of a group, or is shown as another."""


def about(run: Run) -> dict[str, Any]:
    """What the lowest rank says of itself."""
    return next(iter(run.about.values()))


def coverages(run: Run) -> list[Coverage]:
    """How much each rank looked at; empty if one did not come to its end."""
    looked = [one.get("looked") for one in run.about.values()]
    if None in looked:
        return []
    return [Coverage(one["steps"], one["full"], tuple(one["unjudged"])) for one in looked if one is not None]


def title(run: Run) -> str:
    """The script that ran, else the folder."""
    words = [str(word) for word in about(run).get("command") or ()]
    scripts = [Path(word).name for word in words[1:] if word.endswith((".py", ".ipynb"))]
    modules = [after for before, after in pairwise(words) if before == "-m"]
    others = [module for module in modules if module not in ("ta_runtime", "torch.distributed.run")]
    return (scripts or others or [run.folder.resolve().name])[0]


def settings(run: Run) -> Iterator[tuple[str, str]]:
    """What may differ from one run to another, each with its name, as far as it is known."""
    said = about(run)
    if command := said.get("command"):
        yield "command", shlex.join(typed(command))
    if commit := _commit(said.get("git")):
        yield "commit", commit
    for one in said.get("optimizers") or ():
        yield from _of_optimizer(one)
    if sizes := said.get("batch_size"):
        yield "batch size", ", ".join(map(str, sizes))
    if said.get("seed") is not None:
        yield "seed", str(said["seed"])
    device = said.get("device") or {}
    if name := device.get("name"):
        memory = device.get("memory")
        yield "device", f"{name}, {size(memory)}" if isinstance(memory, int) else str(name)
    world = said.get("world_size")
    if isinstance(world, int) and world > 1:
        seen = f", {len(run.about)} recorded" if len(run.about) != world else ""
        yield "world size", f"{counted(world, 'rank')}{seen}"
    if torch := said.get("torch"):
        yield "torch", f"{torch}, Python {said['python']}" if said.get("python") else str(torch)


def html(run: Run) -> Iterator[tuple[str, str]]:
    """All that is known of a single run, each with its name, as HTML."""
    lines: list[tuple[str, str]] = []
    for name, text in settings(run):
        if (setting := name.removeprefix(f"{_OPTIMIZER} ")) != name:
            lines[-1] = _OPTIMIZER, f"{lines[-1][1]}, {setting} {text}"
        else:
            lines.append((name, text))
    for name, text in lines:
        yield name, f"<code>{escape(text)}</code>" if name == "command" else escape(text)
    if started := when(about(run).get("started")):
        yield "started", escape(started)
    yield from _trackers(about(run))
    yield "folder", f"<code>{escape(str(run.folder))}</code>"


def _commit(git: object) -> str:
    if not isinstance(git, dict) or not git.get("commit"):
        return ""
    return f"{str(git['commit'])[:10]}{', with changes that are not committed' if git.get('dirty') else ''}"


def _of_optimizer(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Its class and its settings; of several groups a setting may have several values."""
    given = said.get("groups")
    groups = [group for group in given if isinstance(group, dict)] if isinstance(given, list) else []
    groups = [group | ({"lr": group["initial_lr"]} if "initial_lr" in group else {}) for group in groups]
    yield _OPTIMIZER, str(said.get("class", ""))
    for name in dict.fromkeys(name for group in groups for name in group if name not in _OF_GROUPS):
        yield (
            f"{_OPTIMIZER} {name}",
            _several(list(dict.fromkeys(_value(group.get(name)) for group in groups))),
        )
    if counts := [f"{group['elements']:,}" for group in groups if isinstance(group.get("elements"), int)]:
        yield f"{_OPTIMIZER} parameters", _several(counts)


def _several(texts: Sequence[str]) -> str:
    more = f" / and {len(texts) - _SEVERAL} more" if len(texts) > _SEVERAL else ""
    return f"{' / '.join(texts[:_SEVERAL])}{more}"


def _value(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_value, value))
    if value is None or isinstance(value, bool):
        return "on" if value else "off"
    return number(value) if isinstance(value, int | float) else str(value)


def _trackers(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where else the run is told of; a link where that is an address of the web."""
    listed = said.get("trackers")
    for tracker in listed if isinstance(listed, list) else ():
        if not isinstance(tracker, dict) or not tracker.get("tool"):
            continue
        url, place = str(tracker.get("url") or ""), str(tracker.get("folder") or "")
        name = escape(str(tracker.get("name") or tracker.get("id") or url))
        told = f'<a href="{escape(url)}" rel="noopener noreferrer">{name}</a>' if is_web(url) else name
        if place:
            told = f"{told} <code>{escape(place)}</code>" if told else f"<code>{escape(place)}</code>"
        yield escape(str(tracker["tool"])), told


def when(started: object) -> str:
    """A moment in words; nothing of what is none."""
    try:
        moment = datetime.fromisoformat(str(started))
    except ValueError:
        return ""
    return f"{moment.day} {moment:%B %Y, %H:%M %Z}"
