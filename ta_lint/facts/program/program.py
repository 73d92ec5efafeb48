"""The files of a project, parsed when another file's facts first need them."""

import os
from functools import lru_cache
from typing import NamedTuple

import libcst as cst

from ta_lint.core.errors import Unreadable
from ta_lint.core.source import Source, read, source_of
from ta_lint.facts.values.names import Binding, Names
from ta_lint.file import name_of
from ta_lint.project.exports import Exports, exports
from ta_lint.project.project import project_of
from ta_lint.syntax.parse import parse
from ta_lint.syntax.places import Places
from ta_lint.syntax.tree import Node, Tree

_REEXPORTS_DEEP = 8
_FILES_OF_A_FILE = 60  # that are parsed for the facts of one file
_NODES_KEPT = 400_000  # about 100 MB
_LARGEST = 1 << 20  # bytes of a file
_MOST_IMPORTERS = 8

_Stamp = tuple[int, int, int]


class Parsed(NamedTuple):
    """One parsed file."""

    path: str
    source: Source
    tree: Tree
    places: Places
    names: Names


class _Definition(NamedTuple):
    """What an import leads to: a name at the top of a file, and attributes of it; the file itself if the name is empty."""

    file: str
    name: str
    attributes: tuple[str, ...]


class _Target(NamedTuple):
    """What an import means: a definition in the project, or a full name outside of it, or neither if it is not known."""

    definition: _Definition | None = None
    outside: str | None = None


_UNKNOWN = _Target()


class Program:
    """The files of one project.

    Keeps what it has parsed for the next file that needs it, within a budget. What has changed on disk is read again after
    `project.renew`.
    """

    def __init__(self, root: str) -> None:
        """`root` is the folder that paths in findings are relative to."""
        self._root = root
        self._project = project_of(root)
        self._parsed: dict[str, Parsed | None] = {}  # the least recently used first
        self._exports: dict[str, Exports | None] = {}
        self._stamps: dict[str, _Stamp | None] = {}
        self._targets: dict[tuple[str, str], _Target] = {}
        self._used: dict[str, set[str]] = {}
        self._importers: dict[tuple[str, str], list[str]] = {}
        self._room = _FILES_OF_A_FILE

    # -- files ------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Forget the files that have changed on disk, if it is to be looked at anew."""
        current = project_of(self._root)
        if current is self._project:
            return
        self._project = current
        self._targets.clear()
        self._used.clear()
        self._importers.clear()
        for path in [path for path, stamp in self._stamps.items() if _stamp(path) != stamp]:
            del self._stamps[path]
            self._exports.pop(path, None)
            self._parsed.pop(path, None)

    def open(self, path: str, source: Source) -> Parsed:
        """A file to lint, with this text, which need not be that on disk.

        Raises:
            Unreadable: as for `syntax.parse`.
        """
        self._renew()
        self._make_room()
        known = self._parsed.get(path)
        if known is None or known.source.text != source.text or known.source.path != source.path:
            stands = (
                self._stamps.get(path) is not None and known is not None and known.source.text == source.text
            )
            self._drop(path)
            known = self._parse(path, source)
            self._stamps[path] = _stamp(path) if stands else None
        self._keep(path, known)
        return known

    def used(self, path: str) -> set[str]:
        """The other files that the facts of a file may have been taken from."""
        found: set[str] = set()
        pending = [path]
        while pending:
            new = self._used.get(pending.pop(), set()) - found
            found |= new
            pending += new
        return found - {path}

    def holding(self, node: Node) -> Parsed | None:
        """The parsed file that a node is in."""
        number = id(node)
        for parsed in reversed(self._parsed.values()):
            if parsed is not None and number in parsed.tree.number:
                return parsed
        return None

    def tree_of(self, node: Node) -> Tree | None:
        """The tree that a node is in."""
        found = self.holding(node)
        return found.tree if found is not None else None

    def parsed(self, path: str) -> Parsed | None:
        """A file as it is on disk; None if it cannot be read or parsed, or if too many are open."""
        if path not in self._parsed:
            source = self._source(path) if self._room else None
            if source is None:
                return None
            self._room -= 1
            try:
                self._parsed[path] = self._parse(path, source)
            except Unreadable:
                self._parsed[path] = None
        found = self._parsed[path]
        if found is not None:
            self._keep(path, found)
        return found

    def exports(self, path: str) -> Exports | None:
        """What a file binds at its top; None if it cannot be read or parsed."""
        if path not in self._exports:
            parsed = self._parsed.get(path)
            source = parsed.source if parsed is not None else self._source(path)
            self._exports[path] = _exports(source) if source is not None else None
        return self._exports[path]

    def _parse(self, path: str, source: Source) -> Parsed:
        tree, places = parse(source)
        tree.elsewhere = self.tree_of
        return Parsed(path, source, tree, places, Names(tree, _Links(self, path)))

    def _source(self, path: str) -> Source | None:
        self._stamps[path] = _stamp(path)
        try:
            data = read(path)
            return source_of(name_of(path, self._root), data) if len(data) <= _LARGEST else None
        except Unreadable:
            return None

    def _keep(self, path: str, parsed: Parsed) -> None:
        """Note that a file was used last."""
        self._parsed.pop(path, None)
        self._parsed[path] = parsed

    def _drop(self, path: str) -> None:
        """Forget a file that has another text now."""
        self._parsed.pop(path, None)
        if self._exports.pop(path, None) is not None:
            self._targets.clear()
            self._importers.clear()

    def _make_room(self) -> None:
        """Drop what was not used for the longest time, until the rest is within the budget."""
        self._room = _FILES_OF_A_FILE
        left = sum(len(parsed.tree.nodes) for parsed in self._parsed.values() if parsed is not None)
        for path, parsed in list(self._parsed.items()):
            if left <= _NODES_KEPT:
                break
            left -= len(parsed.tree.nodes) if parsed is not None else 0
            del self._parsed[path]

    # -- imports ----------------------------------------------------------------------------------------------

    def outside(self, importer: str, name: str) -> str | None:
        """As `Links.outside`, for an import of this file."""
        target = self._target(importer, name)
        if target.outside is not None:
            return target.outside
        definition = target.definition
        return None if definition is not None and definition.name else name

    def definition(self, importer: str, name: str) -> Binding | None:
        """As `Links.definition`, for an import of this file."""
        found = self._target(importer, name).definition
        if found is None or not found.name or found.attributes:
            return None
        parsed = self.parsed(found.file)
        bindings = parsed.names.exported(found.name) if parsed is not None else []
        return bindings[0] if len(bindings) == 1 else None

    def attributes_of_imports(self, importer: str) -> frozenset[str]:
        """As `Links.attributes`, for the imports of this file."""
        found = [self.exports(path) for path in self._imported_files(importer)]
        return frozenset().union(*(bound.attributes for bound in found if bound is not None))

    def _imported_files(self, importer: str) -> set[str]:
        """The files of the project that the names which a file imports are defined in."""
        bound = self.exports(importer)
        if bound is None:
            return set()
        targets = {target for found in bound.names.values() for target in found if target}
        definitions = (self._target(importer, target).definition for target in sorted(targets))
        return {definition.file for definition in definitions if definition is not None}

    def importers(self, path: str, name: str) -> list[Parsed]:
        """The files that import what a file binds to a name; empty if there are too many for their calls to tell anything."""
        key = path, name
        if key not in self._importers:
            self._importers[key] = self._find_importers(path, name)
        found = self._importers[key]
        self._used.setdefault(path, set()).update(found)
        return [parsed for file in found if (parsed := self.parsed(file)) is not None]

    def _find_importers(self, path: str, name: str) -> list[str]:
        word = name.encode()
        definition = _Definition(path, name, ())
        found: list[str] = []
        for file in self._project.layout.nearby(path):
            if file == path or word not in self._project.around.bytes_of(file):
                continue
            bound = self.exports(file)
            targets = bound.names.values() if bound is not None else ()
            if any(self._leads_to(file, target, definition) for targets_ in targets for target in targets_):
                found.append(file)
                if len(found) > _MOST_IMPORTERS:
                    return []
        return found

    def _leads_to(self, importer: str, target: str, definition: _Definition) -> bool:
        """Whether an import is one of a definition, or of the module that it is in."""
        found = self._target(importer, target).definition if target else None
        return found is not None and found.file == definition.file and found.name in ("", definition.name)

    def _target(self, importer: str, name: str) -> _Target:
        key = importer, name
        if key not in self._targets:
            self._targets[key] = self._look_up(importer, name, _REEXPORTS_DEEP)
        return self._targets[key]

    def _look_up(self, importer: str, name: str, depth: int) -> _Target:
        """What a full name means in a file that imports it; relative names begin with dots."""
        if depth == 0:
            return _UNKNOWN
        rest = name.lstrip(".")
        dots, parts = name[: len(name) - len(rest)], rest.split(".") if rest else []
        first = dots or parts.pop(0)
        module = self._project.layout.module(importer, first)
        if module is None:
            return _UNKNOWN if dots else _Target(outside=name)
        return self._in_module(importer, module, parts, depth)

    def _in_module(self, importer: str, module: str, parts: list[str], depth: int) -> _Target:
        for place, part in enumerate(parts):
            file = self._project.layout.file(module)
            bound = self._exports_for(importer, file) if file is not None and file != importer else None
            if file is not None and bound is not None and part in bound.names:
                return self._named(file, bound, part, parts[place + 1 :], depth)
            below = self._project.layout.inside(module, part) if not module.endswith(".py") else None
            if below is None:
                starred = bound.stars if bound is not None and file is not None else ()
                return self._starred(file or "", starred, parts[place:], depth)
            module = below
        file = self._project.layout.file(module)
        return _Target(_Definition(file, "", ())) if file is not None else _UNKNOWN

    def _named(self, file: str, bound: Exports, name: str, attributes: list[str], depth: int) -> _Target:
        target = bound.target(name)
        if target is None:
            return _UNKNOWN
        if not target:
            return _Target(_Definition(file, name, tuple(attributes)))
        return self._look_up(file, ".".join([target, *attributes]), depth - 1)

    def _starred(self, file: str, modules: tuple[str, ...], parts: list[str], depth: int) -> _Target:
        """What a name means that one of several modules gives by `from module import *`."""
        for module in modules:
            joint = "" if module.endswith(".") else "."
            found = self._look_up(file, f"{module}{joint}{'.'.join(parts)}", depth - 1)
            if found.definition is not None:
                return found
        return _UNKNOWN

    def _exports_for(self, importer: str, file: str) -> Exports | None:
        self._used.setdefault(importer, set()).add(file)
        return self.exports(file)


class _Links:
    """The imports of one file: implements `facts.values.names.Links`."""

    def __init__(self, program: Program, path: str) -> None:
        self._program = program
        self._path = path

    def outside(self, name: str) -> str | None:
        return self._program.outside(self._path, name)

    def names(self, node: Node) -> Names | None:
        found = self._program.holding(node)
        return found.names if found is not None else None

    def definition(self, name: str) -> Binding | None:
        return self._program.definition(self._path, name)

    def importers(self, name: str) -> list[cst.Module]:
        return [parsed.tree.root for parsed in self._program.importers(self._path, name)]

    def attributes(self) -> frozenset[str]:
        return self._program.attributes_of_imports(self._path)


@lru_cache(4)
def program_of(root: str) -> Program:
    """The program whose files are named relative to this folder."""
    return Program(root)


def _exports(source: Source) -> Exports | None:
    try:
        syntax = source.syntax
    except Unreadable:
        return None
    return exports(syntax) if not isinstance(syntax, SyntaxError) else None


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
