"""Which of the modules that a file imports everything from may give a name, so that only these are asked for it."""

from collections.abc import Callable
from typing import NamedTuple

from ta_lint.project.exports import Exports
from ta_lint.project.layout import Layout

Names = frozenset[str] | None
"""The names that a module may give; None if that may be any."""


class _Module(NamedTuple):
    """A module that a file imports everything from."""

    names: Names
    """What it may give without its own star imports."""
    file: str | None = None
    """The file whose star imports add to that."""


class Stars:
    """What the files of a project may have by `from module import *`, each file looked through once.

    The package of `transformers` imports by star from 2,300 files, and thousands of names are looked up in it.
    """

    def __init__(self, layout: Layout, exports: Callable[[str], Exports | None]) -> None:
        self._layout = layout
        self._exports = exports

    def giving(self, file: str, name: str) -> list[str]:
        """The modules that may give a file a name, as it writes them, in its order."""
        return [module for module, names in self._given(file).items() if names is None or name in names]

    def _given(self, file: str) -> dict[str, Names]:
        """What each module may give a file. What is below it is answered first, so that each answer is taken from others."""
        if not self._layout.trail.knows(("giving", file)):
            for below in self._below(file):
                self._remembered(below)
        return self._remembered(file)

    def _remembered(self, file: str) -> dict[str, Names]:
        return self._layout.trail.remembered(
            ("giving", file),
            lambda: {module: self._names(self._module(file, module)) for module in self._written(file)},
        )

    def _written(self, file: str) -> tuple[str, ...]:
        bound = self._exports(file)
        return bound.stars if bound is not None else ()

    def _below(self, file: str) -> list[str]:
        """The files that a file imports everything from, directly or not, whose answer is not known: each after those below it."""
        found: list[str] = []
        seen = {file}
        pending = [(file, iter(self._files(file)))]
        while pending:
            above, files = pending[-1]
            below = next((one for one in files if one not in seen), None)
            if below is None:
                found.append(above)
                pending.pop()
            else:
                seen.add(below)
                if not self._layout.trail.knows(("giving", below)):
                    pending.append((below, iter(self._files(below))))
        return found[:-1]

    def _files(self, file: str) -> list[str]:
        """The files that a file imports everything from."""
        modules = (self._module(file, written) for written in self._written(file))
        return [module.file for module in modules if module.file is not None]

    def _names(self, module: _Module) -> Names:
        """All that a module may give. Files that import everything from one another are gone through, as none has its answer first."""
        found: set[str] = set()
        modules = [module]
        seen: set[str] = set()
        for one in modules:
            if one.names is None:
                return None
            found |= one.names
            if one.file is None or one.file in seen:
                continue
            seen.add(one.file)
            if self._layout.trail.knows(("giving", one.file)):
                modules += map(_Module, self._remembered(one.file).values())
            else:
                modules += [self._module(one.file, written) for written in self._written(one.file)]
        return frozenset(found)

    def _module(self, importer: str, written: str) -> _Module:
        return self._layout.trail.remembered(
            ("star", importer, written), lambda: self._found(importer, written)
        )

    def _found(self, importer: str, written: str) -> _Module:
        rest = written.lstrip(".")
        dots, parts = written[: len(written) - len(rest)], rest.split(".") if rest else []
        module = self._layout.module(importer, first := dots or parts.pop(0))
        if module is None:
            return _Module(frozenset() if first == dots else None)
        for part in parts:
            bound = self._bound(importer, module)
            below = self._layout.inside(module, part) if not module.endswith(".py") else None
            if below is None or (bound is not None and part in bound.names):
                return _Module(None)  # what the package itself binds to the name of a module
            module = below
        bound = self._bound(importer, module)
        names = self._layout.members(module)
        if bound is None:
            return _Module(names)
        return _Module(names | bound.names.keys(), self._layout.file(module))

    def _bound(self, importer: str, module: str) -> Exports | None:
        """What the file of a module binds, unless that is the importer itself."""
        file = self._layout.file(module)
        return self._exports(file) if file is not None and file != importer else None
