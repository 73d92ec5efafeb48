"""How many of the bugs that people made and mended the linter names: real fixes, linted before and after.

`python benchmarks/fixes.py REPOSITORIES --rows FIXES [--repo NAME] [--rule RULE] [--commit HASH] [--json FILE] [--write]`; see
`benchmarks/README.md`.
"""

import argparse
import ast
import csv
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from corpus import Missing, sources, unpack_sdist
from tables import aligned

from ta_lint.core.catalogue import catalogue

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "fixes.json"
LEFT = ROOT / "benchmarks" / "fixes.toml"
"""Why some bugs are not named: what would be wrong to say, or cannot be known. And which are of rules younger than the table."""

NEAR = 3
"""Lines around a change: a finding there stands on the same screen of a diff, whose context they are."""

_COLUMNS = ("repo", "commit", "ranges", "rule", "reason_class")


# Files that say which releases of torch a program is for.
_DEPENDENCIES = frozenset({"pyproject.toml", "requirements.txt", "setup.cfg"})

_IMPORT = re.compile(rb"(?m)^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)")
_WORD = re.compile(rb"\w+")


class Verdict(StrEnum):
    """What the linter says of a bug by what it finds before the fix and after."""

    FOUND = "found"
    """At the lines that the fix changes, and with the fix it goes."""
    STAYS = "found, and stays"
    """At those lines, but the file has as many findings afterwards: the fix is partial, or the finding is of something else."""
    ELSEWHERE = "found elsewhere"
    """In other lines or another file, and with the fix it goes: the same bug, told from its other end."""
    MISSED = "missed"
    RUN_ONLY = "of the run alone"
    NO_RULE = "no rule"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Hunk:
    """Lines that a fix replaces, as in a unified diff; of a pure insertion `old_count` is 0, and `old_line` is the line above."""

    old_line: int
    old_count: int
    new_line: int
    new_count: int

    @property
    def changed(self) -> range:
        """The lines before the fix that it changes, or between which it inserts."""
        return range(self.old_line, self.old_line + (self.old_count or 2))


@dataclass(frozen=True)
class Fix:
    """A commit that mends a bug: where, which rule is about it, and what once kept that rule silent, if it was."""

    repo: str
    commit: str
    hunks: dict[str, tuple[Hunk, ...]]
    rule: str
    reason: str


@dataclass(frozen=True)
class Place:
    """Where a finding stands, and the other places that it names."""

    path: str
    line: int
    end_line: int
    related: tuple[tuple[str, int, int], ...] = ()

    @property
    def spans(self) -> tuple[tuple[str, int, int], ...]:
        """All that it points at: file, first and last line."""
        return ((self.path, self.line, self.end_line), *self.related)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Outcome:
    """What became of a fix. `places` are those of the findings that the verdict rests on, `note` says why it was skipped, or
    why the linter rightly does not name the bug.
    """

    repo: str
    commit: str
    rule: str
    reason: str
    verdict: Verdict
    places: tuple[str, ...] = ()
    note: str = ""


def main() -> int:
    """Lint the fixes, and print a line for each and two tables; returns the exit status."""
    arguments = _arguments()
    outcomes = []
    try:
        for fix in read(arguments.rows):
            if arguments.repo and fix.repo not in arguments.repo:
                continue
            if arguments.rule and fix.rule not in arguments.rule:
                continue
            if arguments.commit and not fix.commit.startswith(tuple(arguments.commit)):
                continue
            outcomes.append(outcome_of(fix, arguments.repositories))
            print(line(outcomes[-1]), flush=True)
    except Missing as error:
        print(f"fixes.py: error: {error}", file=sys.stderr)
        return 2
    results = [asdict(outcome) for outcome in outcomes]
    print("\n".join(["", *by_rule(results), "", *by_reason(results), "", *left(results), sums(results)]))
    text = json.dumps(results, indent=1) + "\n"
    if arguments.json is not None:
        arguments.json.write_text(text, encoding="utf-8")
    if arguments.write:
        RESULTS.write_text(text, encoding="utf-8")
    return 0


def read(table: Path) -> list[Fix]:
    """The fixes of a table with tabs between its columns, as `benchmarks/README.md` describes them.

    Raises:
        Missing: the table cannot be read, or lacks a column.
    """
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except OSError as error:
        raise Missing(f"{table}: {error.strerror}") from error
    for column in _COLUMNS:
        if rows and column not in rows[0]:
            raise Missing(f"{table}: no column {column!r}")
    return [
        Fix(row["repo"], row["commit"], _hunks(row["ranges"]), _rule(row), row["reason_class"])
        for row in rows
    ]


def _rule(row: dict[str, str]) -> str:
    """The rule that a fix is about: that of its row, or one that was made after the table."""
    if row["rule"] in catalogue():
        return row["rule"]
    later = (
        entry["rule"]
        for entry in tomllib.loads(LEFT.read_text(encoding="utf-8"))["about"]
        if entry["repo"] == row["repo"] and row["commit"].startswith(entry["commit"])
    )
    return next(later, row["rule"])


def outcome_of(fix: Fix, repositories: Path) -> Outcome:
    """Lint the program as it was before a fix, and as the fix left it.

    Raises:
        Missing: the linter fails.
    """

    def outcome(verdict: Verdict, places: Iterable[Place] = (), note: str = "") -> Outcome:
        named = tuple(dict.fromkeys(map(str, places)))
        return Outcome(fix.repo, fix.commit, fix.rule, fix.reason, verdict, named, note)

    rule = catalogue().get(fix.rule)
    if rule is None:
        return outcome(Verdict.NO_RULE)
    if "static" not in rule.observers:
        return outcome(Verdict.RUN_ONLY)
    repository = git_directory(repositories / fix.repo.replace("/", "+"))
    if repository is None:
        return outcome(Verdict.SKIPPED, note="no repository")
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch, "before"), Path(scratch, "after")
        try:
            _check_out(repository, f"{fix.commit}^1", before)
            _check_out(repository, fix.commit, after)
        except Missing as error:
            return outcome(Verdict.SKIPPED, note=str(error))
        old, new = (_findings(tree, fix.rule, fix.hunks) for tree in (before, after))
        verdict, places = judged(fix.hunks, old, new, lambda path: _text(before / path))
    why = "" if verdict in (Verdict.FOUND, Verdict.ELSEWHERE) else reason_to_leave(fix.repo, fix.commit)
    return outcome(verdict, places, why)


def reason_to_leave(repo: str, commit: str) -> str:
    """Why the linter does not name the bug of a fix, as it was judged; empty if nobody has."""
    entries = tomllib.loads(LEFT.read_text(encoding="utf-8"))["left"]
    found = (
        entry["reason"] for entry in entries if entry["repo"] == repo and commit.startswith(entry["commit"])
    )
    return next(found, "")


def judged(
    hunks: dict[str, tuple[Hunk, ...]], before: list[Place], after: list[Place], text: Callable[[str], str]
) -> tuple[Verdict, list[Place]]:
    """What the findings of a rule say of a fix, and those that say it. `text` is that of a file before the fix.

    A finding is at the fix if it, or another place that it names, is within `NEAR` lines of a change, in the statement that
    changes, or at the head of one around it, such as its loop or class. It goes if its file then has fewer findings of the
    rule, wherever they have moved to.
    """
    near = {path: _near(path_hunks, text(path)) for path, path_hunks in hunks.items()}
    at_fix = [place for place in before if _is_at(place, near)]
    gone = _by_file(before) - _by_file(after)
    if at_fix:
        is_gone = any(place.path in gone for place in at_fix)
        return (Verdict.FOUND if is_gone else Verdict.STAYS), at_fix
    if len(after) < len(before):  # not if a file was renamed
        return Verdict.ELSEWHERE, [place for place in before if place.path in gone]
    return Verdict.MISSED, []


def line(outcome: Outcome) -> str:
    """A fix in one line."""
    said = ", ".join(filter(None, [outcome.note, *outcome.places]))
    text = f"{outcome.repo} {outcome.commit[:10]} {outcome.rule}: {outcome.verdict}"
    return f"{text}: {said}" if said else text


def by_rule(results: list[dict[str, Any]]) -> Iterator[str]:
    """A table of what each rule finds of the fixes that it is about, those left out that were skipped."""

    def name(result: dict[str, Any]) -> str:
        rule = catalogue()[result["rule"]]
        return f"{rule.id} {rule.name}{'' if rule.default else ' (not by default)'}"

    return _table("rule", results, name)


def by_reason(results: list[dict[str, Any]]) -> Iterator[str]:
    """The same table by what kept the rules silent when the fixes were collected."""
    return _table("silent at first", results, lambda result: result["reason"] or "no")


def left(results: list[dict[str, Any]]) -> Iterator[str]:
    """The fixes whose bugs the linter does not name for a reason, with that."""
    for result in results:
        if result["note"] and result["verdict"] in (Verdict.MISSED, Verdict.STAYS):
            verdict = "" if result["verdict"] == Verdict.MISSED else f", {result['verdict']}"
            yield f"- {result['repo']} {result['commit'][:10]}, {result['rule']}{verdict}: {result['note']}"


def sums(results: list[dict[str, Any]]) -> str:
    """How many fixes there are, and how many of them the tables leave out."""
    counts = Counter(result["verdict"] for result in results)
    left_out = (
        f"{counts[Verdict.NO_RULE]} are of bugs that no rule is about, {counts[Verdict.SKIPPED]} are skipped"
    )
    return f"Of {len(results)} fixes, {left_out}."


def _table(header: str, results: list[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    for result in results:
        if result["verdict"] not in (Verdict.NO_RULE, Verdict.SKIPPED):
            counts.setdefault(key(result), Counter())[result["verdict"]] += 1
    rows: list[tuple[str, ...]] = [(header, "fixes", "found before", "gone after", "found elsewhere")]
    rows += [_row(name, counts[name]) for name in sorted(counts)]
    return aligned([*rows, _row("all", sum(counts.values(), Counter()))])


def _row(name: str, counts: Counter[str]) -> tuple[str, ...]:
    found = counts[Verdict.FOUND]
    cells = (counts.total(), found + counts[Verdict.STAYS], found, counts[Verdict.ELSEWHERE])
    return name, *map(str, cells)


# -- where findings stand -------------------------------------------------------------------------------------


def _hunks(ranges: str) -> dict[str, tuple[Hunk, ...]]:
    return {path: tuple(Hunk(*hunk) for hunk in hunks) for path, hunks in json.loads(ranges).items()}


def _near(hunks: Iterable[Hunk], text: str) -> set[int]:
    """The lines of a file that are so near to a change that a finding there names it."""
    changed = {line for hunk in hunks for line in hunk.changed}
    near = {number for line in changed for number in range(line - NEAR, line + NEAR + 1)}
    for head, last in _statements(text):
        if not changed.isdisjoint(range(head.start, last + 1)):
            near.update(head)
    return near


def _statements(text: str) -> Iterator[tuple[range, int]]:
    """The lines of the head of each statement, which is all of one without a body, and its last line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            yield range(node.lineno, max(node.lineno + 1, body[0].lineno) if body else last + 1), last


def _is_at(place: Place, near: dict[str, set[int]]) -> bool:
    return any(not near.get(path, set()).isdisjoint(range(line, end + 1)) for path, line, end in place.spans)


def _by_file(places: Iterable[Place]) -> Counter[str]:
    return Counter(place.path for place in places)


# -- programs and what is found in them -----------------------------------------------------------------------


def git_directory(folder: Path) -> Path | None:
    """The git directory that a folder is, or that lies in it: a mirror's own, or the one of a clone."""
    for pattern in ("HEAD", "*/HEAD", "*/*/HEAD"):
        for head in sorted(folder.glob(pattern)):
            if (head.parent / "objects").is_dir():
                return head.parent
    return None


def _check_out(repository: Path, commit: str, tree: Path) -> None:
    """Write the Python files of a commit, and those that say which torch it is for, in a folder that looks like a checkout.

    Raises:
        Missing: the repository does not have all of it.
    """
    git = ["git", f"--git-dir={repository}"]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", commit], check=False, capture_output=True, text=True
    )
    needs = [path for path in listed.stdout.splitlines() if path.rpartition("/")[2] in _DEPENDENCIES]
    command = [*git, "archive", "--format=tar", "--prefix=tree/", commit, "*.py", *needs]
    ran = subprocess.run(command, check=False, capture_output=True)
    if ran.returncode:
        raise Missing(f"no commit {commit[:10]}")
    (tree / ".git").mkdir(parents=True)  # the top of a project, to the linter
    unpack_sdist(ran.stdout, commit, tree.resolve(), tuple(_DEPENDENCIES))


def _findings(tree: Path, rule: str, paths: Iterable[str]) -> list[Place]:
    """What a rule finds in some files of a program, and in those around them.

    Raises:
        Missing: the linter fails.
    """
    # What is linted must not be imported: -P, as modules of the program may be named like those of the linter.
    command = [sys.executable, "-P", "-m", "ta_lint", "check", f"--select={rule}", "--no-cache"]
    files = _around(tree, [tree / path for path in paths if (tree / path).is_file()])
    if not files:
        return []  # the fix adds the file
    ran = subprocess.run(
        [*command, "--format=json", "--exit-zero", "--", *files],
        cwd=tree, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if ran.returncode:
        raise Missing(f"ta-lint: {(ran.stderr.strip().splitlines() or ['it fails'])[-1]}")
    return [
        Place(finding["path"], finding["line"], finding["end_line"], tuple(map(_span, finding["related"])))
        for finding in json.loads(ran.stdout)
        if finding["rule"] == rule and finding["suppression"] is None
    ]


def _around(tree: Path, files: list[Path]) -> list[str]:
    """Files of a program, those that they import and those that import them, by the names in import statements."""
    words = {
        path: frozenset(_WORD.findall(b" ".join(_IMPORT.findall(path.read_bytes()))))
        for path in sources(tree)
    }
    names = {path: (path.parent if path.stem == "__init__" else path).stem.encode() for path in words}
    here, used = {names[path] for path in files}, {word for path in files for word in words[path]}
    found = (path for path in words if path in files or names[path] in used or here & words[path])
    return [path.relative_to(tree).as_posix() for path in found]


def _span(related: dict[str, Any]) -> tuple[str, int, int]:
    return related["path"], related["line"], related["end_line"]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Lint real programs before and after fixes of their bugs.")
    parser.add_argument("repositories", type=Path, help="folder of git directories, such as owner+name/")
    parser.add_argument("--rows", type=Path, required=True, metavar="FIXES", help="the table of fixes")
    parser.add_argument("--repo", action="append", metavar="OWNER/NAME", help="only this one; repeatable")
    parser.add_argument("--rule", action="append", metavar="RULE", help="only this one; repeatable")
    parser.add_argument(
        "--commit", action="append", metavar="HASH", help="only this one, by how it begins; repeatable"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of each fix")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    arguments = parser.parse_args()
    if arguments.write and (arguments.repo or arguments.rule or arguments.commit):
        parser.error("--write is for all fixes")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
