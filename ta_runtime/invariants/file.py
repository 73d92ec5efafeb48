"""The file of invariants: JSON that people read, edit and keep under version control.

    {"format": "ta-runtime invariants", "version": 1, "tool": ..., "torch": [...], "traces": [...], "invariants": [
        {"id": "contain-3f9a2c51", "says": "`Net` always calls `Linear`", "template": "contain",
         "terms": {"parent": "__main__.Net", "child": "torch.nn.Linear"}, "where": {}, "holds": 90, "runs": 1,
         "suppressed": false, "note": "", "covered_by": ""}, ...]}

What an invariant means are its template, terms and where; id and sentence follow from them, and are written anew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Never

import msgspec

from ta_lint import __version__
from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.files import write_atomically
from ta_runtime.invariants import templates
from ta_runtime.invariants.checking import template
from ta_runtime.invariants.invariant import ATTRIBUTES, Invariant

FORMAT = "ta-runtime invariants"
VERSION = 1

_VALUES = {
    "phase": ("setup", "train", "eval"),
    "rank": ("first", "other"),
    "autocast": ("yes", "no"),
    "requires_grad": ("yes", "no"),
}


_TYPES = {("period", "times"): (int, "a whole number"), ("constant_argument", "value"): (object, "")}
"""Of the terms of templates that are not names or other words."""


class InvariantEntry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One invariant as it is written. A person who adds one needs its template and terms alone."""

    id: str = ""
    says: str = ""
    template: str
    terms: dict[str, str | bool | int | float]
    where: dict[str, str] = {}
    holds: int = 0
    runs: int = 0
    suppressed: bool = False
    note: str = ""
    covered_by: str = ""


class _InvariantFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: str
    version: int
    tool: str = ""
    torch: list[str] = []
    traces: list[str] = []
    invariants: list[InvariantEntry]


class _Header(msgspec.Struct):
    """What is looked at before the rest, which a newer version may write otherwise."""

    format: str = ""
    version: int = 0


def load(path: Path) -> list[Invariant]:
    """The invariants of a file, also those that are suppressed.

    Raises:
        UsageError: it is missing, damaged, of something else or of a newer version, or an entry says what cannot be.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file; make it with `ta-runtime infer TRACE -o {path}`") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    try:
        header = msgspec.json.decode(data, type=_Header)
        if header.format == FORMAT and header.version > VERSION:
            raise UsageError(
                f"{path}: has version {header.version}, and this ta-runtime reads version {VERSION}; "
                "update by `pip install -U 'ta-lint[invariants]'`"
            )
        if (header.format, header.version) != (FORMAT, VERSION):
            raise UsageError(
                f'{path}: no file of invariants: `"format": "{FORMAT}", "version": {VERSION}` is not in it'
            )
        entries = msgspec.json.decode(data, type=_InvariantFile).invariants
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {oneline(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: is not JSON: {oneline(error)}; repair it, or make it again with `ta-runtime infer`"
        ) from error
    return [_invariant(path, number, entry) for number, entry in enumerate(entries)]


def merged(paths: Iterable[Path]) -> list[Invariant]:
    """The invariants of several files, each once: suppressed if it is so in one of them, seen as often as in all.

    Raises:
        UsageError: as `load` does.
    """
    by_id: dict[str, Invariant] = {}
    for each in (each for path in paths for each in load(path)):
        old = by_id.get(each.id)
        by_id[each.id] = each if old is None else Invariant(
            each.template,
            each.terms,
            each.where,
            old.holds + each.holds,
            old.runs + each.runs,
            old.suppressed or each.suppressed,
            old.note if old.note == each.note else " ".join(filter(None, (old.note, each.note))),
            old.covered_by or each.covered_by,
        )  # fmt: skip
    return list(by_id.values())


def save(
    path: Path, invariants: Iterable[Invariant], *, traces: Sequence[str] = (), torch: Sequence[str] = ()
) -> None:
    """Write a file, whole or not at all.

    Args:
        traces: the folders that they were learned from.
        torch: the versions of torch that wrote these.

    Raises:
        UsageError: it cannot be written.
    """
    entries = [
        InvariantEntry(
            id=each.id,
            says=says(each),
            template=each.template,
            terms=dict(each.terms),
            where=dict(each.where),
            holds=each.holds,
            runs=each.runs,
            suppressed=each.suppressed,
            note=each.note,
            covered_by=each.covered_by,
        )
        for each in invariants
    ]
    whole = _InvariantFile(
        format=FORMAT,
        version=VERSION,
        tool=f"ta-lint {__version__}",
        torch=list(torch),
        traces=list(traces),
        invariants=entries,
    )
    write_atomically(path, msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")


def says(invariant: Invariant) -> str:
    """The sentence that people read."""
    sentence: str = template(invariant.template).sentence(invariant.terms, invariant.where)
    return sentence


def _invariant(path: Path, number: int, entry: InvariantEntry) -> Invariant:
    complain = partial(_complaint, path, number, entry)
    if entry.template not in templates.NAMES:
        raise complain(f"there is no template `{entry.template}`; there are {', '.join(templates.NAMES)}")
    if unknown := [name for name in entry.where if name not in ATTRIBUTES]:
        raise complain(f"`where` knows no `{unknown[0]}`; it can be about {', '.join(ATTRIBUTES)}")
    for name, value in entry.where.items():
        if value not in _VALUES.get(name, (value,)):
            raise complain(f"`where` has `{name}` as `{value}`; it can be {' or '.join(_VALUES[name])}")
    invariant = Invariant(
        entry.template,
        entry.terms,
        entry.where,
        entry.holds,
        entry.runs,
        entry.suppressed,
        entry.note,
        entry.covered_by,
    )
    for name, term in entry.terms.items():
        of_type, called = _TYPES.get((entry.template, name), (str, "a text"))
        if not isinstance(term, of_type) or (of_type is int and isinstance(term, bool)):
            raise complain(f"`terms` has `{name}` as {term!r}; it is {called}")
    try:
        _try(replace(invariant, terms=_Terms(entry.terms)))
    except _LackError as error:
        raise complain(f"`terms` lacks {error}") from error
    except KeyError as error:
        raise complain(f"`terms` has {error}, which `{entry.template}` does not know") from error
    return invariant


class _LackError(Exception):
    """There is no such term."""


class _Terms(dict[str, str | bool | int | float]):
    """Terms that tell one that is missing from a value that some other table does not hold."""

    def __missing__(self, name: str) -> Never:
        raise _LackError(repr(name))


def _try(invariant: Invariant) -> None:
    """Ask of an invariant what is asked of it later, before any event is seen."""
    says(invariant)
    template(invariant.template).Watcher([invariant])


def _complaint(path: Path, number: int, entry: InvariantEntry, what: str) -> UsageError:
    return UsageError(f"{path}: invariants[{number}]{f', {entry.id}' if entry.id else ''}: {what}")
