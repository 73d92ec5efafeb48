"""The ranks of a distributed run: which one this is, what they show each other, and rank 0's gathering of what all saw.

Without collectives, which would wait for ever for a rank that has died: each rank puts what it saw into the store that
the process group was made with. While the run goes on the others take what is there, without waiting; at the end
rank 0 waits for it, for a few seconds.
"""

import contextlib
import os
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ta_runtime.coverage import Coverage
from ta_runtime.facts import Told
from ta_runtime.incidents import Incident, Inspection

PATIENCE = timedelta(seconds=10)
"""How long rank 0 waits for the others in all: they end their last step at about the same time."""
_GLANCE = timedelta(milliseconds=100)  # what was not there after the first wait will not come

_known: tuple[int, int] | None = None  # rank and size of the process group, also when it is gone again


@dataclass
class RankReport:
    """What one rank saw: its incidents, what was hidden from it, and what it tells of itself to be compared."""

    incidents: list[Incident] = field(default_factory=list)
    told: Told = field(default_factory=Told)
    not_seen: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Its own reports, which rank 0's replaces."""
    inspected: list[Inspection] = field(default_factory=list)
    """Where it looked, or could not, and found nothing."""
    uncompared: Mapping[int, Mapping[tuple[str, str], object]] = field(default_factory=dict)
    """What invariants compare of the steps of which rank 0 had not shown its own yet, by step."""
    coverage: Coverage = field(default_factory=lambda: Coverage(0, 0))
    """How much of its run it looked at."""


def rank() -> int:
    """This process's rank, 0 outside of a distributed run."""
    return _place()[0]


def world_size() -> int:
    return _place()[1]


def known() -> bool:
    """Whether anything says which rank this process is."""
    _place()
    return _known is not None or _number("RANK") is not None


def connected() -> bool:
    """Whether the other ranks can be asked."""
    return _store() is not None


def post(topic: str, value: object) -> None:
    """Show the other ranks something, in place of what was there; nobody waits for it."""
    if (store := _store()) is not None:
        with contextlib.suppress(RuntimeError):  # whoever held the store has ended
            store.set(_topic(topic, rank()), pickle.dumps(value))


def looked(topic: str, other: int) -> Any:
    """What another rank shows now, None if nothing is there."""
    key = _topic(topic, other)
    store = _store()
    try:
        return pickle.loads(store.get(key)) if store is not None and store.check([key]) else None
    except (RuntimeError, pickle.UnpicklingError, EOFError):
        return None


def agreed(topic: str, value: str) -> str:
    """Of what the ranks say of a topic, what was said first; its own where the other ranks cannot be asked."""
    if (store := _store()) is not None:
        with contextlib.suppress(RuntimeError):  # whoever held the store has ended
            return str(store.compare_set(f"ta_runtime/{topic}", "", value).decode())
    return value


def exchange(seen: RankReport, patience: timedelta = PATIENCE) -> dict[int, RankReport] | None:
    """Hand over what this rank saw; on rank 0 returns what the other ranks did, as far as it came in time.

    Returns None if there is nobody to exchange with, or the store is gone.
    """
    store = _store()
    if store is None:
        return None
    if rank() != 0:
        try:
            store.set(_key(rank()), pickle.dumps(seen))
        except RuntimeError:  # rank 0, which held the store, has ended
            return None
        return {}
    received = {}
    for other in range(1, world_size()):
        try:
            store.wait([_key(other)], patience)
            received[other] = pickle.loads(store.get(_key(other)))
            store.delete_key(_key(other))  # or a later exchange would take it for new
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            patience = _GLANCE
    return received


def merged(own: list[Incident], received: dict[int, RankReport]) -> list[Incident]:
    """One incident for each pitfall at one place, and for each chain of causes, with the ranks that saw it."""
    by_rank = {0: own} | {other: seen.incidents for other, seen in received.items()}
    return united(({number}, incident) for number, incidents in by_rank.items() for incident in incidents)


def united(seen: Iterable[tuple[set[int], Incident]]) -> list[Incident]:
    """One incident for each pitfall at one place, and for each chain of causes, with the ranks that saw it, if any are named.

    It is that of the process that saw it first.
    """
    found: dict[object, Incident] = {}
    for ranks, incident in sorted(seen, key=lambda entry: (entry[1].first_step, entry[1].suspicion.order)):
        suspicion = incident.suspicion
        key = suspicion.cause or (incident.rule, suspicion.identity)
        known = found.get(key)
        if known is None:
            known = found[key] = replace(incident, ranks=set(), followers=list(incident.followers))
        else:
            known.follow(incident.rule, suspicion)
        known.ranks.update(ranks)
        known.last_step = max(known.last_step, incident.last_step)
        known.times = max(known.times, incident.times)
    return list(found.values())


def merged_inspected(own: list[Inspection], received: dict[int, RankReport]) -> list[Inspection]:
    """One for each place, with the ranks that looked there."""
    by_rank = {0: own} | {other: seen.inspected for other, seen in received.items()}
    return united_inspected(({number}, entry) for number, entries in by_rank.items() for entry in entries)


def united_inspected(seen: Iterable[tuple[set[int], Inspection]]) -> list[Inspection]:
    """One for each place, with the ranks that looked there, if any are named: one that could look outweighs the others."""
    found: dict[object, Inspection] = {}
    for ranks, look in sorted(seen, key=lambda entry: not entry[1].refutes):
        known = found.setdefault((look.rule, look.said.place), replace(look, ranks=set()))
        if known.refutes is look.refutes:
            known.ranks.update(ranks)
    return list(found.values())


def _place() -> tuple[int, int]:
    global _known
    if dist.is_available() and dist.is_initialized():
        _known = dist.get_rank(), dist.get_world_size()
    if _known is not None:
        return _known
    number = _number("RANK") or _number(
        "LOCAL_RANK"
    )  # Lightning's own launcher says that of the machine alone
    return number or 0, _number("WORLD_SIZE") or 1


def _number(variable: str) -> int | None:
    return int(value) if (value := os.environ.get(variable, "")).isdigit() else None


def _key(number: int) -> str:
    return f"ta_runtime/seen/{number}"


def _topic(topic: str, number: int) -> str:
    return f"ta_runtime/{topic}/{number}"


def _store() -> Any:
    """The store of the process group, None outside of one. Torch has no public way to it."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return None
    get = getattr(dist.distributed_c10d, "_get_default_store", None)
    return get() if get is not None else None
