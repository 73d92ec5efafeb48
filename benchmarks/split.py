"""How much of what is found in one file is found in several: programs are split as people write them, and linted again.

    python benchmarks/split.py

The programs are the marked blocks of the rule pages and of `tests/cases`.
"""

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover
from ta_lint.runner import lint_files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from marked import Block, blocks

PAGES = [*sorted((ROOT / "rules").glob("TA*.md")), *sorted((ROOT / "tests" / "cases").glob("TA*.md"))]

_MAIN = "train"


def split(code: str) -> dict[str, str]:
    """The files of the package by name, each with its part of the lines; the one file as it is if nothing can move.

    Classes go to `models.py` and `data.py`, functions to `engine.py`; what uses a variable of the script stays in
    `train.py`, and so does what a name that is bound twice stands for. Each file has the imports of the original, and those
    of what it uses of the others.
    """
    tree = ast.parse(code)
    lines = code.splitlines()
    imports = [part for part in tree.body if isinstance(part, (ast.Import, ast.ImportFrom))]
    outside = {alias.asname or alias.name.partition(".")[0] for part in imports for alias in part.names}
    if "*" in outside or any(
        isinstance(part, ast.ImportFrom) and part.module == "__future__" for part in imports
    ):
        return {f"{_MAIN}.py": code}
    homes = _homes(tree, outside)
    parts: dict[str, list[str]] = {}
    used: dict[str, set[str]] = {}
    for statement in tree.body:
        if statement in imports:
            continue
        home = homes.get(getattr(statement, "name", ""), _MAIN)
        parts.setdefault(home, []).extend(_lines(statement, tree, lines))
        used.setdefault(home, set()).update(_names(statement))
    files = {}
    for home, body in parts.items():
        above = [text for part in imports for text in _lines(part, tree, lines)]
        for other in sorted(parts.keys() - {home}):
            wanted = sorted(name for name in used[home] if homes.get(name) == other)
            above += [f"from {other} import {', '.join(wanted)}"] if wanted else []
        files[f"{home}.py"] = "\n".join([*above, *body]) + "\n"
    return files


def _homes(tree: ast.Module, outside: set[str]) -> dict[str, str]:
    """The file of each function and class that can move: what it needs is imported, or moves too."""
    bound = [name for statement in tree.body for name in _bound(statement)]
    found = {
        part.name: _home(part)
        for part in tree.body
        if isinstance(part, (ast.ClassDef, ast.FunctionDef)) and bound.count(part.name) == 1
    }
    needs = {name: _names(part) for part in tree.body if (name := getattr(part, "name", "")) in found}
    while True:
        stay = {
            name for name in found if needs[name] & set(bound) - found.keys() - outside - set(dir(builtins))
        }
        order = {"models": 0, "data": 1, "engine": 2}
        stay |= {  # no circles
            name
            for name in found
            for other in needs[name] & found.keys()
            if order[found[other]] > order[found[name]]
        }
        if not stay:
            return found
        for name in stay:
            del found[name]


def _home(part: ast.ClassDef | ast.FunctionDef) -> str:
    if isinstance(part, ast.FunctionDef):
        return "engine"
    bases = " ".join(ast.unparse(base) for base in part.bases)
    return "data" if "Dataset" in bases or "Sampler" in bases else "models"


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top binds."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _lines(statement: ast.stmt, tree: ast.Module, lines: list[str]) -> list[str]:
    """The lines of a statement with its decorators, and the comments above it."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(part.lineno for part in decorators)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return lines[first - 1 : statement.end_lineno]


def main() -> None:
    """Split each marked block of the rule pages and cases, lint the package, and print what is found of the marked lines."""
    marked, missed, extra = Counter[str](), Counter[str](), Counter[str]()
    for block in (block for page in PAGES for block in blocks(page)):
        files = _files(block)
        if len(files) < 2:
            continue
        with TemporaryDirectory() as name:
            folder = Path(name)
            for path, code in files.items():
                (folder / path).write_text(code, encoding="utf-8")
            rules = sorted({block.page[:5], *(rule for _, rule in block.expected("static"))})
            configs = Configs(Options(select=rules, target_torch=block.settings.get("target-torch")), folder)
            for file, findings in lint_files(discover([folder], configs, folder), 1):
                found = {(finding.site.line, finding.rule) for finding in findings if finding.counts}
                expected = set(_marks(files[file.name]))
                marked.update(rule for _, rule in expected)
                missed.update(rule for _, rule in expected - found)
                extra.update(rule for _, rule in found - expected)
    for rule in sorted(missed | extra):
        print(
            f"{rule}  {missed[rule]:3} of {marked[rule]:3} missed, {extra[rule]:3} reported in several files alone"
        )
    print(
        f"{marked.total() - missed.total()} of {marked.total()} found, {extra.total()} reported in several files alone"
    )


def _files(block: Block) -> dict[str, str]:
    """The package of a block; empty for one that is no program of its own."""
    if "verdict" in block.words or "path" in block.settings:
        return {}
    try:
        return split(block.code)
    except SyntaxError:
        return {}


def _marks(code: str) -> Iterator[tuple[int, str]]:
    """The line and the rule of each mark."""
    for number, line in enumerate(code.splitlines(), 1):
        for mark in re.findall(r"# static: ([TA\d, ]+)", line):
            yield from ((number, rule) for rule in re.findall(r"TA\d{3}", mark))


if __name__ == "__main__":
    main()
