"""Snapshots as the files of fkat's Introspection: `introspection/{stage}/step={n}/rank{r}.yaml`, and two for the environment.

A tensor is one line, `2x3|fp32|0∞̟|0∞̠|...|digest`, with the fields in the order of that tool. What it does not record, such
as activations and losses, has sections of its own at the end.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ta_lint.core.errors import UsageError
from ta_lint.core.files import write_atomically
from ta_runtime import ranks, storage
from ta_runtime.extras import needs
from ta_runtime.measure.digests import of_bytes
from ta_runtime.snapshot.plain import Plain, plain, read, read_word

Row = Mapping[str, Any]

FOLDER = "introspection"
STAGE = "fit"
"""The stage of Lightning whose steps are recorded."""

_SIGNS = {
    "pos_infs": "∞̟", "neg_infs": "∞̠", "nans": "⚠", "zeros": "⌀", "med": "m̃", "mean": "μ", "amean": "μ⁺", "std": "σ",
    "var": "σ²", "uvar": "s²", "skew": "γ₁", "kurt": "γ₂", "mode": "Mo", "min": "↤", "max": "↦",
}  # fmt: skip
_BEFORE = {
    "environment": "env_vars.yaml",
    "package": "pip_freeze.yaml",
    "configuration": "configuration.yaml",
}
_HYPERPARAMETER = re.compile(r"\w+\.(?:group(\d+)|defaults)\.(.+)", re.DOTALL)
_STRUCTURE, _INDEX = "(structure)", "(index)"
_COUNTS = ("pos_infs", "neg_infs", "nans", "zeros")
_WHOLE = ("int", "uint", "bool", "qint", "quint")
_SHORT = {
    "float": "fp",
    "bfloat": "bf",
    "uint": "u",
    "int": "i",
    "complex": "c",
    "quint": "qui",
    "qint": "qi",
    "bool": "b",
}


class Files:
    """Writes the files of one rank."""

    waits = False

    def __init__(self, folder: Path, *, rank: int | None = None) -> None:
        self.folder = folder.absolute() / FOLDER
        self._rank = rank
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            storage.make_folders(self.folder, folder.absolute())
        except OSError as error:
            raise UsageError(f"{folder}: {error.strerror}; name another folder") from error
        if any(self.folder.glob(f"*/*/rank{self._number}.yaml")):
            raise UsageError(f"{folder}: holds snapshots already; name another folder, or delete it")

    @property
    def _number(self) -> int:
        return ranks.rank() if self._rank is None else self._rank

    def add(self, rows: Iterable[Row]) -> None:
        """Write the rows of one step, or those of before the first."""
        for path, content in documents(list(rows), self._number):
            self.write(path, content)

    def catch_up(self) -> None:
        """Nothing waits: each file is written at once."""

    begin = flush = catch_up

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        path = self.folder / name
        storage.make_folders(path.parent, self.folder)
        write_atomically(path, _dumped(content), private=True)


def to_yaml(run_folder: str | Path, out: str | Path) -> Path:
    """Write the snapshots in the folder of a run once more, as files of YAML below `out`; return their folder.

    Raises:
        UsageError: there is no run, a file of it is damaged, or `out` holds such files already.
    """
    from ta_runtime.runs import Run

    rows = Run(run_folder).records.to_pylist()
    by_step: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        by_step.setdefault((row["rank"], row["step"]), []).append(row)
    files = Files(Path(out))
    for (rank, _), of_step in by_step.items():
        for path, content in documents(of_step, rank):
            files.write(path, content)
    return files.folder


def documents(rows: list[Row], rank: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files for the rows of one step, by path below the folder `introspection`."""
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
    if rows and rows[0]["step"] >= 0:
        yield f"{STAGE}/step={rows[0]['step']}/rank{rank}.yaml", dict(_sections(by_kind))
        return
    for kind, path in _BEFORE.items():
        if kind in by_kind and rank == 0:
            yield path, _plain(by_kind[kind])


def line(row: Row) -> str:
    """A tensor as one line: the statistics that were taken, between its shape and dtype and its digest."""
    fields = ["×".join(map(str, row["shape"] or ())) or "scalar", short(row["dtype"])]
    whole = str(row["dtype"]).startswith(_WHOLE)
    for name, sign in _SIGNS.items():
        if (value := row.get(name)) is not None:
            is_count = name in _COUNTS or (whole and name in ("mode", "min", "max"))
            fields.append(f"{int(value) if is_count else value}{sign}")
    fields.append(row.get("digest") or f"({row.get('algorithm')})")
    return "|".join(fields)


def short(dtype: str) -> str:
    """The name of a dtype as that tool has it: `fp32`, `bf16`, `i64`, `fp8_e4m3fn`."""
    for long in sorted(_SHORT, key=len, reverse=True):
        if dtype.startswith(long):
            return _SHORT[long] + dtype.removeprefix(long)
    return dtype


def _sections(by_kind: dict[str, list[Row]]) -> Iterator[tuple[str, Any]]:
    parameters, gradients = by_kind.pop("parameter", []), by_kind.pop("gradient", [])
    if parameters or gradients:
        section: dict[str, Any] = {}
        for part, rows in (("data", parameters), ("grad", gradients)):
            for name, row in _named(rows):
                section.setdefault(name, {})[part] = _value(row)
        section |= _sealed("__all_data__", parameters) | _sealed("__all_grads__", gradients)
        yield "parameters", section
    if buffers := by_kind.pop("buffer", []):
        yield "buffers", _values(buffers) | _sealed("__all_buffers__", buffers)
    settings, states = by_kind.pop("configuration", []), by_kind.pop("optimizer", [])
    if states:
        yield "optimizers", _optimizers(settings, states)
        yield "__all_optimizers__", _seal([*states, *(row for row in settings if _of_optimizer(row))])
    if generators := by_kind.pop("rng", []):
        yield "rngs", {name: row["digest"] for name, row in _named(generators)}
    if batch := by_kind.pop("batch", []):
        yield "batch", {**_batches(batch), "__all_batch__": _seal(batch)}
    if losses := by_kind.pop("loss", []):
        yield "losses", _values(losses)
    if activations := by_kind.pop("activation", []):
        yield "activations", _values(activations)
    if rest := [row for row in settings if not _of_optimizer(row) and row["name"] != "optimizer"]:
        yield "configuration", {name: read_word(row["text"]) for name, row in _named(rest)}
    if variables := by_kind.pop("environment", []):
        yield "env_vars", _plain(variables)


def _optimizers(settings: list[Row], states: list[Row]) -> list[dict[str, Any]]:
    """One entry for each that stepped, in order: its class, its defaults, its groups, and its state by parameter."""
    found: list[dict[str, Any]] = []
    for row in states:
        if row["name"] == "(class)":
            found.append({"__type__": row["text"], "defaults": {}, "param_groups": [], "state": []})
        else:
            found[-1]["state"].append(row)
    index = -1
    for row in settings:
        if row["name"] == "optimizer":
            index += 1
        elif 0 <= index < len(found) and (of := _of_optimizer(row)) is not None:
            part, name = of
            if part == "defaults":
                found[index]["defaults"][name] = read(row["text"])
                continue
            groups = found[index]["param_groups"]
            groups += [{} for _ in range(int(part) + 1 - len(groups))]
            groups[int(part)][name] = read(row["text"])
    for entry in found:
        rows = entry.pop("state")
        for part in ("defaults", "param_groups"):
            entry[f"__all_{part}__"] = of_bytes(repr(entry[part]).encode())[0]
        entry |= {"state": _values(rows), "__all_state__": _seal(rows)}
    return found


def _of_optimizer(row: Row) -> tuple[str, str] | None:
    """Of a hyperparameter the number of its group, or `defaults`, and its name; None for another setting."""
    found = _HYPERPARAMETER.fullmatch(row["name"])
    return None if found is None else (found[1] or "defaults", found[2])


def _batches(rows: Iterable[Row]) -> dict[str, Any]:
    """What a loader handed out as `__batch__`, nested as it was, and its number in `__batch_idx__`.

    What a model was given is `arguments`, or the batch where there is no loader; that of a criterion has its class for a name.
    """
    found: dict[str, Any] = {}
    index: Plain = None
    for row in rows:
        path, is_first, _ = str(row["name"]).rpartition(_STRUCTURE)
        if row["name"] == f"loaded.{_INDEX}":
            index = read(row["text"])
        elif is_first:
            prefix = path.rstrip(".")
            name = "__batch__" if prefix == "loaded" else prefix or "arguments"
            times = sum(each.partition("#")[0] == name for each in found)
            group = found[f"{name}#{times}" if times else name] = {"__structure__": row["text"]}
        else:
            group[row["name"].removeprefix(f"{prefix}.")] = _value(row)
    found = {name: _nested(group) for name, group in found.items()}
    if "__batch__" not in found and "arguments" in found:
        found = {"__batch__": found.pop("arguments"), **found}
    return found if index is None else {"__batch_idx__": index, **found}


def _nested(values: dict[str, Any]) -> Any:
    """Values by their paths, as the lists and mappings that these tell of; all else that there was is `__structure__`."""
    structure = values.pop("__structure__")
    if list(values) in ([], ["0"], ["loaded"]) and structure in ("Tensor", "ndarray"):
        return next(iter(values.values()), structure)
    tree: dict[str, Any] = {}
    for path, value in values.items():
        inner, (*parents, name) = tree, path.split(".")
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):  # a key with a dot in it
                return {**values, "__structure__": structure}
        inner[name] = value
    found = _listed(tree)
    return {**found, "__structure__": structure} if isinstance(found, dict) else found


def _listed(tree: Any) -> Any:
    """The same with lists for what is numbered without a gap."""
    if not isinstance(tree, dict):
        return tree
    inner = {name: _listed(item) for name, item in tree.items()}
    numbered = bool(inner) and list(inner) == [str(number) for number in range(len(inner))]
    return list(inner.values()) if numbered else inner


def _named(rows: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """Rows by names that are unique: the second output of a module is `name#1`."""
    times: dict[str, int] = {}
    for row in rows:
        name = row["name"]
        count = times[name] = times.get(name, -1) + 1
        yield (f"{name}#{count}" if count else name), row


def _values(rows: Iterable[Row]) -> dict[str, Any]:
    return {name: _value(row) for name, row in _named(rows)}


def _value(row: Row) -> Plain:
    if row.get("dtype") is not None:
        return line(row)
    return read(row["text"]) if row["kind"] == "optimizer" else str(row["text"])


def _plain(rows: Iterable[Row]) -> dict[str, str]:
    return {name: row["text"] for name, row in _named(rows)}


def _sealed(name: str, rows: list[Row]) -> dict[str, str]:
    return {name: _seal(rows)} if rows else {}


def _seal(rows: Iterable[Row]) -> str:
    """One digest of all: of names, texts and digests in order, each delimited."""
    parts = [(row["name"], row.get("text"), row.get("digest")) for row in rows]
    return of_bytes(repr(parts).encode())[0]


def _dumped(content: Mapping[str, Any]) -> str:
    with needs("yaml", "record", "snapshots are written as YAML by PyYAML"):
        import yaml
    options = {"sort_keys": False, "default_flow_style": False, "allow_unicode": True, "width": 10**6}
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # which knows of no class of Python
    text: str = yaml.dump(plain(content), Dumper=dumper, indent=2, **options)
    return text
