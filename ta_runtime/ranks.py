"""The ranks of a distributed run: which one this is, and rank 0's gathering of what all saw.

Without collectives, which would wait for ever for a rank that has died: each rank puts its incidents into the store
that the process group was made with, and rank 0 takes what is there within a few seconds.
"""

import os
import pickle
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ta_runtime.incidents import Incident

_PATIENCE = timedelta(seconds=10)


def rank() -> int:
    """This process's rank, 0 outside of a distributed run."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return int(value) if (value := os.environ.get("RANK", "")).isdigit() else 0


def world_size() -> int:
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    return int(value) if (value := os.environ.get("WORLD_SIZE", "")).isdigit() else 1


@dataclass
class Seen:
    """What one rank saw: its incidents, and of each loader the hashes of its first batches."""

    incidents: list[Incident]
    digests: list[list[str]]


def exchange(seen: Seen) -> dict[int, Seen]:
    """On rank 0, what the other ranks handed over, without those that did not within seconds; on the others nothing."""
    store = _store()
    if store is None:
        return {}
    if rank() != 0:
        store.set(_key(rank()), pickle.dumps(seen))
        return {}
    received = {}
    patience = _PATIENCE
    for other in range(1, world_size()):
        try:
            store.wait([_key(other)], patience)
            received[other] = pickle.loads(store.get(_key(other)))
        except (RuntimeError, pickle.UnpicklingError, EOFError):  # it died, or the store's host did
            patience = timedelta(milliseconds=100)  # what was not there after the first wait will not come
    return received


def merged(own: list[Incident], received: dict[int, Seen]) -> list[Incident]:
    """One incident for each pitfall at one place, with the ranks that saw it, and the first of their steps."""
    found = {}
    for number, incidents in {0: own, **{other: seen.incidents for other, seen in received.items()}}.items():
        for incident in incidents:
            key = (incident.rule, incident.suspicion.place, incident.suspicion.subject)
            known = found.get(key)
            if known is None:
                known = found[key] = replace(incident, ranks=set())
            known.ranks.add(number)
            known.first_step = min(known.first_step, incident.first_step)
            known.last_step = max(known.last_step, incident.last_step)
            known.times = max(known.times, incident.times)
    return list(found.values())


def _key(number: int) -> str:
    return f"ta_runtime/seen/{number}"


def _store() -> Any:
    """The store of the process group, None outside of one. Torch has no public way to it."""
    if not (dist.is_available() and dist.is_initialized()):
        return None
    get = getattr(dist.distributed_c10d, "_get_default_store", None)
    return get() if get is not None else None
