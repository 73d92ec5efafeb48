"""What the linter suspects in the code that runs: the script, and the modules of the project that it imports.

The one place that reaches for the linter, by its public function, and only where it is asked for.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import ta_lint
from ta_lint.core.config import Configs
from ta_lint.core.finding import Finding
from ta_runtime.probes.places import is_library


class Linting:
    """The suspicions of one run, in order of file and place. Files are read when they are linted, each once."""

    def __init__(self, configs: Configs, root: Path) -> None:
        self._configs = configs
        self._root = root
        self.files: set[Path] = set()
        self.findings: list[Finding] = []

    def script(self, path: Path) -> None:
        """Lint a script before it runs, and what it and its modules import of the project, wherever the import stands."""
        script = path.resolve()
        folders = list(dict.fromkeys([script.parent, Path.cwd(), self._root, self._root / "src"]))
        found: set[Path] = set()
        waiting = [script]
        while waiting:
            file = waiting.pop()
            if file in found or not file.is_file():
                continue
            found.add(file)
            waiting += _imported(file, folders)
        self._lint(found)

    def loaded(self) -> None:
        """Lint the modules of the project that are loaded by now and were not linted yet."""
        names = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        files = {Path(name).resolve() for name in names if isinstance(name, str) and name.endswith(".py")}
        own = {file for file in files if file.is_relative_to(self._root) and not is_library(str(file))}
        self._lint(file for file in own if file.is_file())  # torch makes modules that are no files

    def _lint(self, files: Iterable[Path]) -> None:
        new = sorted(set(files) - self.files)
        self.files.update(new)
        self.findings += ta_lint.lint_files(new, self._configs)


def _imported(file: Path, folders: list[Path]) -> Iterator[Path]:
    """The files that the imports of a file may mean, if they are in these folders or beside it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            places = folders
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]
            places = [file.parents[node.level - 1]] if 0 < node.level <= len(file.parents) else folders
        else:
            continue
        for folder in places:
            for name in filter(None, names):
                yield from _files(folder, name.split("."))


def _files(folder: Path, parts: list[str]) -> Iterator[Path]:
    """The packages on the way to a module, and the module."""
    for count in range(1, len(parts) + 1):
        path = folder.joinpath(*parts[:count])
        for candidate in (path / "__init__.py", path.with_suffix(".py")):
            if candidate.is_file() and not is_library(str(candidate)):
                yield candidate.resolve()
