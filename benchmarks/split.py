"""How much of what is found in one file is found in several: programs are split as people write them, and linted again.

    python benchmarks/split.py [--rule TA600] [--show]

The programs are the blocks of the rule pages and of `tests/cases`. `tests/test_split.py` holds what is found.
"""

import argparse
import ast
import builtins
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover
from ta_lint.runner import lint_files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from marked import Block, blocks

PAGES = [*sorted((ROOT / "rules").glob("TA*.md")), *sorted((ROOT / "tests" / "cases").glob("TA*.md"))]

_MAIN = "train"

# These say that something stands in one file, which is no longer so in several.
_OF_ONE_FILE = {
    "TA853": "model, data and training loop are in one file",
}


class Part(NamedTuple):
    """One file of a program that was split: its text, and which line of the one file each line was."""

    text: str
    lines: list[int]
    """From 1; 0 for the imports of what stands in the other files."""


def split(code: str) -> dict[str, Part]:
    """The files of the package by name, each with its part of the lines; the one file as it is if all stays together.

    Classes go to `models.py` and `data.py`, functions to `engine.py`; what uses a variable of the script stays in
    `train.py`, and so does what a name that is bound twice stands for. Each file has those imports of the original that it
    uses, or nothing uses, and those of what it uses of the others; the script also imports what no other file does, as
    someone has to. If that is all it does, it keeps all imports: it would have to make what the others are given.
    """
    tree = ast.parse(code)
    lines = code.removesuffix("\n").split("\n")
    imports = [part for part in tree.body if isinstance(part, (ast.Import, ast.ImportFrom))]
    homes = {name: _free(home, tree) for name, home in _homes(tree, imports).items()}
    bodies: dict[str, list[int]] = {}
    used: dict[str, set[str]] = {_MAIN: set()}
    for statement in tree.body:
        if statement not in imports:
            home = homes.get(getattr(statement, "name", ""), _MAIN)
            bodies.setdefault(home, []).extend(_lines(statement, lines))
            used.setdefault(home, set()).update(_names(statement))
    if len(bodies) < 2:
        return {f"{_MAIN}.py": Part(code, [*range(1, len(lines) + 1)])}
    bodies.setdefault(_MAIN, [])
    everywhere = {name for names in used.values() for name in names}
    used[_MAIN] |= {
        name for name in homes if not any(homes[name] != home and name in used[home] for home in used)
    }
    found = {}
    for home, body in bodies.items():
        numbers = [
            number
            for part in imports
            if not body or _imported(part) & used[home] or not _imported(part) & everywhere
            for number in _lines(part, lines)
        ]
        texts = [lines[number - 1] for number in numbers]
        for other in sorted(bodies.keys() - {home}):
            wanted = sorted(name for name in used[home] if homes.get(name) == other)
            if wanted:
                texts.append(f"from {other} import {', '.join(wanted)}")
                numbers.append(0)
        texts += [lines[number - 1] for number in body]
        found[f"{home}.py"] = Part("\n".join(texts) + "\n", [*numbers, *body])
    return found


def _free(home: str, tree: ast.Module) -> str:
    """The name of a file that the program imports none of already."""
    named = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
        if name is not None
    }
    return f"own_{home}" if home in named else home


def _is_whole(imports: list[ast.Import | ast.ImportFrom], outside: set[str]) -> bool:
    """Whether imports hold for the whole of a file, or may bind any name of it."""
    return "*" in outside or any(
        isinstance(part, ast.ImportFrom) and part.module == "__future__" for part in imports
    )


def _imported(part: ast.Import | ast.ImportFrom) -> set[str]:
    return {alias.asname or alias.name.partition(".")[0] for alias in part.names}


def _homes(tree: ast.Module, imports: list[ast.Import | ast.ImportFrom]) -> dict[str, str]:
    """The file of each function and class that can move: what it needs is imported, or moves too."""
    outside = {name for part in imports for name in _imported(part)}
    if _is_whole(imports, outside):
        return {}
    bound = [name for statement in tree.body for name in _bound(statement)]
    found = {
        part.name: _home(part)
        for part in tree.body
        if isinstance(part, (ast.ClassDef, ast.FunctionDef)) and bound.count(part.name) == 1
    }
    needs = {name: _names(part) for part in tree.body if (name := getattr(part, "name", "")) in found}
    order = {"models": 0, "data": 1, "engine": 2}
    while True:
        stay = {
            name for name in found if needs[name] & set(bound) - found.keys() - outside - set(dir(builtins))
        }
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
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    if "__all__" not in names:
        return names
    texts = (node.value for node in ast.walk(statement) if isinstance(node, ast.Constant))
    return names | {text for text in texts if isinstance(text, str)}


def _lines(statement: ast.stmt, lines: list[str]) -> Iterable[int]:
    """The lines of a statement with its decorators, and the comments above it."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(part.lineno for part in decorators)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return range(first, (statement.end_lineno or statement.lineno) + 1)


# -- the pages ------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """What a rule reports, or is to report, on a line of a block."""

    block: Block
    number: int
    rule: str

    def __str__(self) -> str:
        text = self.block.code.splitlines()[self.number - 1].strip() if self.number else "an import"
        return f"{self.block}, line {self.number}: {self.rule}: {text}"


class Found(NamedTuple):
    """What is found in each program as one file, and in its files once it is split."""

    marked: list[Line]
    missed: list[Line]
    extra: list[Line]

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / len(self.marked)


def found(rules: Collection[str] = ()) -> Found:
    """Split the blocks of the pages that can be split, and lint each as it is and in its files, all in one go."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        programs = list(_programs(folder, rules))
        configs = Configs(Options(), folder)
        reported: dict[str, set[tuple[int, str]]] = {}
        for file, findings in lint_files(discover([folder], configs, folder), 1):
            lines = {(finding.site.line, finding.rule) for finding in findings if finding.counts}
            reported[file.name] = lines
    marked, missed, extra = [], [], []
    for number, (block, parts) in enumerate(programs):
        single = reported[f"{number}/one/{_MAIN}.py"]
        several = {
            (part.lines[line - 1], rule)
            for path, part in parts.items()
            for line, rule in reported[f"{number}/several/{path}"]
            if part.lines[line - 1]  # what the splitter writes is no part of the program
        }
        expected = {line for line in block.expected("static") & single if line[1] not in _OF_ONE_FILE}
        marked += [Line(block, *line) for line in sorted(expected)]
        missed += [Line(block, *line) for line in sorted(expected - several)]
        extra += [Line(block, *line) for line in sorted(several - single)]
    return Found(marked, missed, extra)


def _programs(folder: Path, rules: Collection[str]) -> Iterator[tuple[Block, dict[str, Part]]]:
    """Write each block that can be split into folders of its own, as it is and split."""
    number = 0
    for block in (block for page in PAGES for block in blocks(page)):
        selected = sorted({block.page[:5], *(rule for _, rule in block.expected("static"))})
        parts = _parts(block) if not rules or set(rules) & set(selected) else {}
        if len(parts) < 2:
            continue
        settings = f"[tool.ta]\nselect = {selected!r}\n"
        if "target-torch" in block.settings:
            settings += f"target-torch = {block.settings['target-torch']!r}\n"
        one = {f"{_MAIN}.py": block.code}
        for kind, texts in (("one", one), ("several", {path: part.text for path, part in parts.items()})):
            place = folder / str(number) / kind
            place.mkdir(parents=True)
            for path, text in {"pyproject.toml": settings, **texts}.items():
                (place / path).write_text(text, encoding="utf-8")
        yield block, parts
        number += 1


def _parts(block: Block) -> dict[str, Part]:
    """The files of a block; empty for one that is no program of its own."""
    if "verdict" in block.words or "path" in block.settings:
        return {}
    try:
        return split(block.code)
    except SyntaxError:
        return {}


def main() -> None:
    """Print what is found of the marked lines, and what is reported in several files alone, by rule."""
    parser = argparse.ArgumentParser(
        description="Split programs into several files and look what is still found."
    )
    parser.add_argument("--rule", action="append", default=[], help="blocks of this rule only; repeatable")
    parser.add_argument("--show", action="store_true", help="also print the lines")
    arguments = parser.parse_args()
    result = found(arguments.rule)
    marked, missed, extra = (Counter(line.rule for line in lines) for lines in result)
    for rule in sorted(missed | extra):
        print(
            f"{rule}  {missed[rule]:3} of {marked[rule]:3} missed, {extra[rule]:3} reported in several files alone"
        )
    if arguments.show:
        print(*(f"missed: {line}" for line in result.missed), sep="\n")
        print(*(f"in several files alone: {line}" for line in result.extra), sep="\n")
    print(
        f"{len(result.marked) - len(result.missed)} of {len(result.marked)} found, "
        f"{len(result.extra)} reported in several files alone"
    )


if __name__ == "__main__":
    main()
