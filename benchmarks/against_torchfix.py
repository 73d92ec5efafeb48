"""ta-lint beside TorchFix on real code: what both find, and what only one of them does, each difference judged.

`python benchmarks/against_torchfix.py [--select ALL] [--corpus timm] [--list]`; see `benchmarks/README.md`.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torchfix
from corpus import FOLDER, VERSIONS, Missing, corpora
from sections import section, write_section
from tables import aligned

from ta_lint.core.catalogue import catalogue
from ta_lint.core.source import Source, decode

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "benchmarks" / "torchfix.json"
DOCUMENT = ROOT / "docs" / "from-torchfix.md"
MAKER = "benchmarks/against_torchfix.py"
JUDGEMENTS = ROOT / "benchmarks" / "torchfix.toml"
FINDINGS = ROOT / "tests" / "ecosystem" / "findings.toml"
CACHE = FOLDER / ".torchfix" / torchfix.VERSION

THEIRS, OURS = "TorchFix", "ta-lint"

_LINE = re.compile(r"^(?P<path>[^\s+-].*?\.py):(?P<line>\d+):\d+: (?P<id>TOR\d{3}) ", re.MULTILINE)


class Found(NamedTuple):
    """A finding of either: `id` is one of TorchFix, or of our rules."""

    path: str
    line: int
    id: str
    message: str = ""


class Difference(NamedTuple):
    """A finding that only one of them has."""

    who: str
    corpus: str
    found: Found


class Verdict(NamedTuple):
    """Whether what one of them alone says is true, and why."""

    true: bool
    reason: str


@dataclass
class Comparison:
    """Findings by id of TorchFix: those of both, and the others. Findings of a kind in one statement count once."""

    both: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


def main() -> int:
    """Compare and print the table; returns the exit status."""
    arguments = _arguments()
    try:
        names = {name: folder.name for name, folder in corpora(arguments.corpus or VERSIONS).items()}
        theirs = {corpus: _theirs(corpus) for corpus in names.values()}
    except Missing as error:
        print(f"against_torchfix.py: error: {error}", file=sys.stderr)
        return 2
    every = arguments.select == "ALL"
    print("ta-lint", file=sys.stderr, flush=True)
    whole = compared(theirs, every=every)
    judged = Judgements()
    verdicts = judged.verdicts(whole.differences)
    table = list(rendered(whole.both, verdicts, every=every))
    print("\n".join(table))
    if arguments.list:
        print("\n".join(listed(verdicts)))
    if arguments.write:
        _write(theirs, table)
    stale = judged.unused() if every and not arguments.corpus else []
    for entry in stale:
        print(f"judged, and no difference any more: {entry}", file=sys.stderr)
    return 1 if stale or any(verdict is None for _, verdict in verdicts) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare ta-lint with TorchFix on real code.")
    parser.add_argument(
        "--corpus", choices=sorted(VERSIONS), action="append", help="only this; may be repeated"
    )
    parser.add_argument(
        "--select", choices=("default", "ALL"), default="default", help="which rules of TorchFix"
    )
    parser.add_argument("--list", action="store_true", help="print every difference, with its verdict")
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep what TorchFix finds in torchfix.json, and the table in docs/from-torchfix.md",
    )
    arguments = parser.parse_args()
    if arguments.write and (arguments.corpus or arguments.select == "ALL"):
        parser.error("--write is of all corpora and the default rules")
    return arguments


# -- what each finds ------------------------------------------------------------------------------------------


def recorded(corpus: str) -> list[Found]:
    """What TorchFix found when it was last run, as it is kept in the repository."""
    kept = json.loads(RECORDED.read_text(encoding="utf-8"))["found"][corpus]
    return [
        Found(path, int(line), code)
        for code, paths in kept.items()
        for path, lines in paths.items()
        for line in lines.split()
    ]


def _theirs(corpus: str) -> list[Found]:
    """What TorchFix finds with all its rules. It takes minutes, so its output is kept beside the corpora.

    Raises:
        Missing: it cannot be had, or does not run to its end.
    """
    output = CACHE / f"{corpus}.txt"
    if not output.is_file():
        environment = torchfix.environment()
        print(f"TorchFix: {corpus}", file=sys.stderr, flush=True)
        folder = FOLDER / corpus
        command = torchfix.command(environment, folder)
        ran = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
        if ran.returncode not in (0, 1) or "Traceback" in ran.stderr:
            raise Missing(f"TorchFix on {corpus}: exit status {ran.returncode}")
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(ran.stdout, encoding="utf-8")
    return parsed(output.read_text(encoding="utf-8"))


def parsed(output: str) -> list[Found]:
    """The findings in what TorchFix prints, between diffs."""
    found = _LINE.finditer(output)
    return [Found(match["path"], int(match["line"]), match["id"]) for match in found]


def _write(theirs: dict[str, list[Found]], table: list[str]) -> None:
    kept: dict[str, dict[str, dict[str, str]]] = {}
    for corpus, found in sorted(theirs.items()):
        of_corpus = kept.setdefault(corpus, {})
        for path, line, code, _ in sorted(found, key=lambda item: (item.id, item)):
            of_path = of_corpus.setdefault(code, {})
            of_path[path] = f"{of_path.get(path, '')} {line}".lstrip()
    text = json.dumps({"version": torchfix.VERSION, "found": kept}, indent=1)
    RECORDED.write_text(f"{text}\n", encoding="utf-8")
    write_section(DOCUMENT, MAKER, "\n".join([*table, ""]))


def _ours(arguments: Iterable[str], paths: Iterable[Path]) -> Iterator[tuple[str, Found]]:
    """What ta-lint finds with these arguments in Python files of the corpora, suppressed or not, each with its corpus."""
    command = [sys.executable, "-m", "ta_lint", "check", "--isolated", "--format=json", *arguments]
    command += map(str, paths)
    ran = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        raise Missing(f"ta-lint: {ran.stderr.strip()}")
    for item in json.loads(ran.stdout):
        corpus, _, path = item["path"].rpartition("benchmarks/corpora/")[2].partition("/")
        if path.endswith(".py"):
            yield corpus, Found(path, item["line"], item["rule"], item["message"])


# -- the comparison -------------------------------------------------------------------------------------------


def rules_of(code: str) -> list[str]:
    """Our rules for an id of TorchFix."""
    return [rule.id for rule in catalogue().values() if code in rule.also]


def compared(theirs: dict[str, list[Found]], *, every: bool) -> Comparison:
    """What TorchFix found in each corpus beside what we find: by its default rules and ours for the same, or by `every`."""
    ours: dict[str, list[Found]] = {corpus: [] for corpus in theirs}
    for corpus, found in _ours([_selecting(every)], [FOLDER / corpus for corpus in theirs]):
        ours[corpus].append(found)
    comparison = Comparison()
    for corpus, of_corpus in theirs.items():
        counted = [found for found in of_corpus if every or _is_default(found.id)]
        _compare(corpus, counted, ours[corpus], comparison)
    return comparison


def _compare(corpus: str, theirs: list[Found], ours: list[Found], comparison: Comparison) -> None:
    at = _Statements(corpus)
    mine: dict[tuple[str, int], set[str]] = {}
    for found in ours:
        mine.setdefault(at(found), set()).add(found.id)
    known: set[tuple[tuple[str, int], str]] = set()
    for found in sorted(theirs):
        if (at(found), found.id) in known:
            continue
        known.add((at(found), found.id))
        if mine.get(at(found), set()).intersection(rules_of(found.id)):
            comparison.both[found.id] += 1
        else:
            comparison.differences.append(Difference(THEIRS, corpus, found))
    for found in sorted(ours):
        same = {(at(found), code) for code in catalogue()[found.id].also}
        if not known & same:
            known |= same
            comparison.differences.append(Difference(OURS, corpus, found))


def statements(corpus: str, found: list[Found]) -> set[tuple[tuple[str, int], str]]:
    """The statements that findings are about, each with the id of what was found."""
    at = _Statements(corpus)
    return {(at(item), item.id) for item in found}


def _is_default(code: str) -> bool:
    return not code.startswith(torchfix.OFF_BY_DEFAULT)


def _selecting(every: bool) -> str:
    """Of our rules, those that have an id of TorchFix: for its default ones our default ones, or for all of them all."""
    rules = [
        rule.id
        for rule in catalogue().values()
        if any(code.startswith("TOR") and (every or _is_default(code)) for code in rule.also)
        and (every or rule.default)
    ]
    return f"--select={','.join(rules)}"


class _Statements:
    """The statement that a finding is about: the two may point at different lines of it."""

    def __init__(self, corpus: str) -> None:
        self._folder = FOLDER / corpus
        self._sources: dict[str, Source] = {}

    def __call__(self, found: Found) -> tuple[str, int]:
        if found.path not in self._sources:
            text = decode((self._folder / found.path).read_bytes())
            self._sources[found.path] = Source(found.path, text)
        return found.path, self._sources[found.path].statement_at(found.line).line


# -- the verdicts ---------------------------------------------------------------------------------------------


class Judgements:
    """What is written down in `torchfix.toml`, and of our default findings in `tests/ecosystem/findings.toml`."""

    def __init__(self) -> None:
        tables = tomllib.loads(JUDGEMENTS.read_text(encoding="utf-8"))
        self._classes = tables.get("class", [])
        self._own = {_key(entry["who"], entry): entry for entry in tables.get("difference", [])}
        judged = tomllib.loads(FINDINGS.read_text(encoding="utf-8"))["finding"]
        self._single = {_key(OURS, {**entry, "id": entry["rule"]}): entry for entry in judged} | self._own
        self._used: set[int] = set()

    def verdicts(self, differences: list[Difference]) -> list[tuple[Difference, Verdict | None]]:
        """What is known of each, None where nobody has judged it: by its own entry, else by that of its class."""
        entries = {difference: self._single.get(_name(difference)) for difference in differences}
        for of_class in self._classes:
            unjudged = [difference for difference, entry in entries.items() if entry is None]
            entries |= dict.fromkeys(_members(unjudged, of_class), of_class)
        self._used |= {id(entry) for entry in entries.values()}
        return [
            (difference, Verdict(entry["verdict"] == "true", entry["reason"]) if entry is not None else None)
            for difference, entry in entries.items()
        ]

    def unused(self) -> list[str]:
        """The differences in `torchfix.toml` that are none."""
        return [" ".join(map(str, key)) for key, entry in self._own.items() if id(entry) not in self._used]


def _key(who: str, entry: dict[str, Any]) -> tuple[str, str, str, int, str]:
    return who, entry["corpus"], entry["path"], entry["line"], entry["id"]


def _name(difference: Difference) -> tuple[str, str, str, int, str]:
    who, corpus, found = difference
    return who, corpus, found.path, found.line, found.id


def _members(differences: list[Difference], of: dict[str, Any]) -> list[Difference]:
    """Those that a class holds, by what it says of them.

    `path`: where it is. `message`: what ta-lint says of it. `found-with`: arguments with which ta-lint finds it as well.
    """
    asked = [item for item in differences if item.who == of["who"] and item.found.id in of["ids"]]
    if "path" in of:
        asked = [item for item in asked if re.fullmatch(of["path"], item.found.path)]
    if "message" in of:
        asked = [item for item in asked if re.fullmatch(of["message"], item.found.message)]
    if "found-with" in of and asked:
        rules = {rule for item in asked for rule in rules_of(item.found.id)}
        paths = {FOLDER / item.corpus / item.found.path for item in asked}
        at = {item.corpus: _Statements(item.corpus) for item in asked}
        arguments = [f"--select={','.join(sorted(rules))}", *of["found-with"]]
        found = {(corpus, *at[corpus](other)) for corpus, other in _ours(arguments, sorted(paths))}
        asked = [item for item in asked if (item.corpus, *at[item.corpus](item.found)) in found]
    return asked


# -- the table ------------------------------------------------------------------------------------------------


def rendered(
    both: Counter[str], verdicts: list[tuple[Difference, Verdict | None]], *, every: bool
) -> Iterator[str]:
    """The table as Markdown that reads as plain text, line by line."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for difference, verdict in verdicts:
        kind = "unjudged" if verdict is None else "true" if verdict.true else "false"
        counts[difference.who, difference.found.id, kind] += 1
    kinds = ["true", "false"]
    if any(kind == "unjudged" for _, _, kind in counts):
        kinds.append("unjudged")
    only = [f"only {who}, {kind}" for who in (THEIRS, OURS) for kind in kinds]
    rows: list[tuple[str, ...]] = [(THEIRS, OURS, "both", *only)]
    said: set[str] = set()
    named = {code for rule in catalogue().values() for code in rule.also if code.startswith("TOR")}
    differing = {difference.found.id for difference, _ in verdicts if difference.who == THEIRS}
    for code in sorted(named | both.keys() | differing):
        if not (every or _is_default(code)):
            continue
        rules = rules_of(code)
        fresh = set(rules) - said  # what only we find is of a rule, and not of one of its ids
        said.update(rules)
        only_theirs = [str(counts[THEIRS, code, kind]) for kind in kinds]
        only_ours = [str(sum(counts[OURS, rule, kind] for rule in fresh)) if fresh else "" for kind in kinds]
        rows.append((code, " ".join(rules), str(both[code]), *only_theirs, *only_ours))
    yield from aligned(rows)
    yield ""
    yield "Statements of the corpora, notebooks left out. What only ta-lint finds is counted beside the first id of its rule."
    yield "True or false: whether the finding of only one tool is right."


def documented() -> dict[str, list[int]]:
    """The figures of the table in `docs/from-torchfix.md`, by id of TorchFix: first what both find, then what only it does."""
    made = section(DOCUMENT, MAKER)
    rows = re.findall(r"^\| (TOR\d{3}) +\|[^|]*\|(.*)\|$", made, re.MULTILINE)
    return {code: [int(cell) for cell in cells.split("|") if cell.strip()] for code, cells in rows}


def listed(verdicts: list[tuple[Difference, Verdict | None]]) -> Iterator[str]:
    """Every difference on a line."""
    for (who, corpus, found), verdict in verdicts:
        said = "unjudged" if verdict is None else f"{str(verdict.true).lower()}: {verdict.reason}"
        yield f"{who}: {corpus}/{found.path}:{found.line}: {found.id}: {said}"


if __name__ == "__main__":
    raise SystemExit(main())
