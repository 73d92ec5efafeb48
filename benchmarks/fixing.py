"""What `--fix` does to real code: a copy of each corpus is fixed by the real command and held to what fixes promise.

`python benchmarks/fixing.py [--corpus timm] [--folder PATH] [--opt-in] [--keep FOLDER]`; see `benchmarks/README.md`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst
import nbformat
from corpus import VERSIONS, Missing, corpora, sources
from tables import aligned

from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import Unreadable
from ta_lint.core.notebook import read_notebook


@dataclass(frozen=True)
class Outcome:
    """What the fixes of some folders did."""

    offered: dict[str, Counter[str]]
    """By rule: how many of its findings had a safe fix, and how many an unsafe one."""
    changed: dict[str, int]
    """By rule: how many of the changed files had one of its fixes."""
    violations: tuple[str, ...]


def main() -> int:
    """Fix, print a table, and what went wrong; returns the exit status."""
    parser = argparse.ArgumentParser(description="Fix copies of the corpora, and check what became of them.")
    parser.add_argument("--corpus", action="append", choices=VERSIONS, help="only this one; may be repeated")
    parser.add_argument("--folder", action="append", type=Path, help="this instead of a corpus")
    parser.add_argument("--opt-in", action="store_true", help="with the fixes of the opt-in rules")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="leave the fixed copies in this new folder"
    )
    arguments = parser.parse_args()
    try:
        folders = arguments.folder or list(corpora(arguments.corpus or VERSIONS).values())
    except Missing as error:
        print(f"fixing.py: {error}", file=sys.stderr)
        return 2
    rules = [f"--extend-select={rule.id}" for rule in catalogue().values() if rule.fix != "none"]
    rules = rules if arguments.opt_in else []
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True)
        outcome = fixed(folders, arguments.keep, rules)
    else:
        with tempfile.TemporaryDirectory() as copies:
            outcome = fixed(folders, Path(copies), rules)
    print("\n".join(table(outcome)))
    for violation in outcome.violations:
        print(f"fixing.py: {violation}", file=sys.stderr)
    return 1 if outcome.violations else 0


def fixed(folders: Iterable[Path], copies: Path, rules: Iterable[str] = ()) -> Outcome:
    """What becomes of copies of the Python files and notebooks of folders; `rules` are arguments that select some."""
    for folder in folders:
        _copy(folder.resolve(), copies / folder.name)
    original = _contents(copies)
    command = ["--isolated", "--format=json", "--exit-zero", *rules]
    before, _ = _run(copies, *command)
    after, said = _run(copies, *command, "--fix", "--unsafe-fixes")
    present = _contents(copies)
    changed = {path for path, data in present.items() if data != original[path]}
    violations = [*said, *_untold(changed, before), *_broken(changed, original, present)]
    violations += _worse(before, after)
    _, said = _run(copies, *command, "--fix", "--unsafe-fixes")
    again = _contents(copies)
    violations += [
        *said,
        *(f"{path}: a second run changes it" for path in again if again[path] != present[path]),
    ]
    offered: dict[str, Counter[str]] = {}
    touched: dict[str, set[str]] = {}
    for finding in before:
        if finding["fix"] is not None:
            offered.setdefault(finding["rule"], Counter())[finding["fix"]["applicability"]] += 1
            touched.setdefault(finding["rule"], set()).add(finding["path"])
    files = {rule: len(paths & changed) for rule, paths in touched.items()}
    return Outcome(offered, files, tuple(dict.fromkeys(violations)))


def table(outcome: Outcome) -> Iterator[str]:
    """One line for each rule that proposed a fix."""
    rows: list[tuple[str, ...]] = [("rule", "safe fixes", "unsafe fixes", "files changed")]
    for rule, counts in sorted(outcome.offered.items()):
        rows.append((rule, str(counts["safe"]), str(counts["unsafe"]), str(outcome.changed[rule])))
    return aligned(rows)


def _copy(folder: Path, copy: Path) -> None:
    for path in _sources(folder):
        if path.is_file():
            target = copy / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in _sources(folder)}


def _sources(folder: Path) -> list[Path]:
    return [*sources(folder), *sorted(folder.rglob("*.ipynb"))]


def _run(folder: Path, *arguments: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The findings that the command reports and that count, and what it complains about."""
    command = [sys.executable, "-m", "ta_lint", "check", *arguments, "."]
    ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    said = [line for line in ran.stderr.splitlines() if not line.startswith("Fixed ")]
    if ran.returncode:
        return [], [*said, f"exit status {ran.returncode}"]
    return [finding for finding in json.loads(ran.stdout) if finding["suppression"] is None], said


def _untold(changed: set[str], before: list[dict[str, Any]]) -> Iterator[str]:
    """The files that changed though nothing that can be fixed is found in them."""
    for path in sorted(changed - {finding["path"] for finding in before if finding["fix"] is not None}):
        yield f"{path}: changed without a finding"


def _broken(changed: set[str], original: dict[str, bytes], present: dict[str, bytes]) -> Iterator[str]:
    """The files that Python, libcst or Jupyter could read and cannot any more, and notebooks changed beside their code."""
    for path in sorted(changed):
        is_notebook = path.endswith(".ipynb")
        reads = _reads_notebook if is_notebook else _reads
        if reads(original[path]) and not reads(present[path]):
            yield f"{path}: cannot be read any more"
        elif is_notebook and _unread(present[path]) > _unread(original[path]):
            yield f"{path}: less of it is Python"
        elif is_notebook and _without_code(original[path]) != _without_code(present[path]):
            yield f"{path}: changed beside its code"


def _reads(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the code, such as an escape that means nothing
            compile(data, "code", "exec", dont_inherit=True)
        cst.parse_module(data)
    except (SyntaxError, ValueError, cst.ParserSyntaxError):
        return False
    return True


def _reads_notebook(data: bytes) -> bool:
    try:
        nbformat.validate(json.loads(data))
        return _reads(read_notebook(data).text.encode())
    except (nbformat.ValidationError, Unreadable):
        return False


def _unread(data: bytes) -> int:
    """How many lines of a notebook are not Python to the linter."""
    notebook = read_notebook(data)
    return notebook.text.count(notebook.mark)


def _without_code(data: bytes) -> Any:
    """The content of a notebook, the code of its cells aside."""
    content = json.loads(data)
    for sheet in (content, *content.get("worksheets", ())):
        for cell in sheet.get("cells", ()):
            if cell["cell_type"] == "code":
                cell["source"] = cell["input"] = None
    return content


def _worse(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[str]:
    """The rules that find more in a file than before its fixes."""
    counts, later = (
        Counter((finding["path"], finding["rule"]) for finding in findings) for findings in (before, after)
    )
    for (path, rule), more in sorted((later - counts).items()):
        yield f"{path}: {more} more of {rule} after the fixes"


if __name__ == "__main__":
    sys.exit(main())
