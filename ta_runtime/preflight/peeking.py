"""Looks into the loaders of a script, in a forked copy of its process: each hands out its first batches there.

What is noted of them is noted by the observer of loaders, and the rules about loaders are asked as at the end of a run.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from ta_lint.core.errors import oneline
from ta_runtime import checks
from ta_runtime.audit.session import Session
from ta_runtime.facts import Run, Suspicion
from ta_runtime.faults import keep
from ta_runtime.measure.tree import tensors
from ta_runtime.observers.overlaps import compared
from ta_runtime.preflight.figures import Figures, figures
from ta_runtime.preflight.watching import KnownLoader
from ta_runtime.probes import hub
from ta_runtime.probes.sources import assigned_to
from ta_runtime.settings import Settings

SECONDS = 8.0
"""How long all of it may take."""
_SAMPLES = 20_000
"""Of a loader, at most."""
_EVALUATES = re.compile(r"(^|[._])(te|test|val|valid|validation|eval|dev|held_?out)", re.IGNORECASE)
_ASKED = {"TA313", "TA314", "TA315", "TA320", "TA856"}
"""The rules that are about loaders alone, and not about what a whole run did with them."""
_FIGURES = 3
"""Tensors of a batch that are shown."""


@dataclass(slots=True)
class PeekedLoader:
    """A loader, and what its first batches hold."""

    name: str
    path: str
    line: int
    trains: bool
    evaluates: bool
    dataset: str
    size: int | None
    """Samples of its data set."""
    batch_size: int | None
    sampler: str
    batches: int = 0
    samples: int = 0
    whole: bool = False
    """Whether these are all."""
    repeated: int = 0
    """Samples that had come before."""
    shared: int = 0
    """Samples that the loader which trains has as well."""
    labels: list[tuple[int, int]] = field(default_factory=list)
    """Each class with how often it comes, the commonest first; empty where no tensor of a batch is one label a sample."""
    alike: int = 0
    """Samples with the label of the one before."""
    batch: list[Figures] = field(default_factory=list)
    """The tensors of its first batch."""
    complaint: str = ""
    """Why it was not looked into."""


@dataclass(slots=True)
class Peeked:
    """What was seen of all loaders, and what the rules about loaders say of it."""

    loaders: list[PeekedLoader] = field(default_factory=list)
    said: list[tuple[str, Suspicion]] = field(default_factory=list)
    """Suspicions, each with its rule."""


def peek(settings: Settings, known: list[KnownLoader], training: KnownLoader | None) -> Peeked:
    """Hand out the first batches of these loaders. Call it in a copy of the process alone."""
    session = Session(settings, optimizers=[])
    session.barrier.on = session.loaders.counts_labels = True
    hub.subscribe(session.loaders, session.barrier.run, hub.REST)
    until = time.monotonic() + SECONDS * 0.8
    found = Peeked()
    hashes: set[int] = set()
    order = sorted(known, key=lambda each: each is not training)
    for number, each in enumerate(order):
        loader = each.loader()
        if loader is None:
            continue
        seconds = max(0.0, until - time.monotonic()) / (len(order) - number)
        shown = _described(each, loader, trains=each is training)
        found.loaders.append(shown)
        if isinstance(loader.dataset, IterableDataset):
            shown.complaint = "a stream may read what cannot be put back"
            continue
        vars(loader).update(
            num_workers=0, pin_memory=False, timeout=0, persistent_workers=False, _iterator=None
        )
        try:
            own = _hand_out(session, shown, loader, time.monotonic() + seconds)
        except Exception as error:  # noqa: BLE001 - the script's own code
            keep(error)
            shown.complaint = f"it raised `{type(error).__name__}`: {oneline(error)}"
            continue
        facts = session.loaders.facts(loader)
        if each is training:
            hashes = own
        else:
            shown.shared = len(own & hashes)
            if facts is not None and shown.evaluates:
                facts.inferred = 1
    run = Run(steps=1, machine=session.machine, loaders=session.loaders.found, history=session.history)
    run.overlaps += compared(run.loaders)
    found.said = list(_said(settings.rules & _ASKED, run))
    return found


def _said(rules: frozenset[str], run: Run) -> Iterator[tuple[str, Suspicion]]:
    for check in checks.enabled(rules):
        if check.fact in ("progress", "run"):
            for said in check.function(run):
                if isinstance(said, Suspicion):
                    yield check.rule, said


def _described(known: KnownLoader, loader: Any, *, trains: bool) -> PeekedLoader:
    name = assigned_to(known.place)
    try:
        size = len(loader.dataset)
    except Exception as error:  # noqa: BLE001 - the script's own code, which may have none
        keep(error)
        size = None
    return PeekedLoader(
        name,
        known.place.path,
        known.place.line,
        trains,
        not trains and bool(_EVALUATES.search(name)),
        type(loader.dataset).__name__,
        size,
        loader.batch_size,
        type(loader.sampler).__name__,
    )


def _hand_out(session: Session, shown: PeekedLoader, loader: Any, until: float) -> set[int]:
    """Take batches until the time is over; returns hashes of the samples."""
    hashes: set[int] = set()
    counts: dict[int, int] = {}
    last: int | None = None
    for batch in loader:
        parts = list(tensors(batch))
        if not shown.batch:
            shown.batch = [figures(name, tensor) for name, tensor in parts[:_FIGURES]]
        rows = _rows([tensor for _, tensor in parts])
        for row in rows:
            shown.repeated += row in hashes
            hashes.add(row)
        for label in _labels([tensor for _, tensor in parts], len(rows)):
            counts[label] = counts.get(label, 0) + 1
            shown.alike += label == last
            last = label
        shown.batches += 1
        shown.samples += len(rows)
        if shown.trains:
            session.loaders.stepped()
        if time.monotonic() > until or shown.samples >= _SAMPLES:
            break
    else:
        shown.whole = True
    shown.labels = sorted(counts.items(), key=lambda item: -item[1])
    if shown.trains:
        _hand_out_again(session, loader, shown.batches, until + 1)
    return hashes


def _hand_out_again(session: Session, loader: Any, batches: int, until: float) -> None:
    """Take as many batches of a second pass, for the rule that asks whether their order is another; and begin a third."""
    for number, _ in enumerate(loader, 1):
        session.loaders.stepped()
        if number == batches or time.monotonic() > until:
            break
    next(iter(loader), None)


def _rows(parts: list[Tensor]) -> list[int]:
    """A hash of each sample of a batch, of all its bytes."""
    count = _count(parts)
    if not count:
        return []
    arrays: list[Any] = [
        part.detach().cpu().contiguous().reshape(count, -1).view(torch.uint8).numpy()
        for part in parts
        if part.numel()
    ]
    return [hash(b"".join(array[index].tobytes() for array in arrays)) for index in range(count)]


def _labels(parts: list[Tensor], count: int) -> list[int]:
    """The last of its tensors that has one integer for each sample."""
    labels = [part for part in parts if part.shape == (count,) and not part.is_floating_point()]
    return [int(value) for value in labels[-1].tolist()] if labels and count else []


def _count(parts: list[Tensor]) -> int:
    counts = {part.shape[0] if part.dim() else 0 for part in parts}
    return counts.pop() if len(counts) == 1 else 0
