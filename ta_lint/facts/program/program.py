"""The files of a project, parsed when another file's facts first need them."""

from functools import lru_cache
from typing import NamedTuple
from weakref import proxy

import libcst as cst

from ta_lint.core.digest import digest_of
from ta_lint.core.errors import Unreadable
from ta_lint.core.reading import Stamp, read_with_stamp, stamp_of
from ta_lint.core.source import Source, source_of
from ta_lint.facts.values.names import Binding, Names
from ta_lint.file import name_of
from ta_lint.project.around import Content
from ta_lint.project.imports import Imports
from ta_lint.project.project import project_of
from ta_lint.syntax.parse import parse
from ta_lint.syntax.places import Places
from ta_lint.syntax.tree import Node, Tree

_NODES_OF_A_FILE = 120_000  # that are parsed for the facts of one file; about 60 MB
_MOST_BESIDE = 12  # files; what more have tells nothing, and parsing them takes the room of others
_NODES_KEPT = 60_000  # for the next file
_LARGEST = 200_000  # bytes; no larger file is parsed for the facts of others


class Parsed(NamedTuple):
    """One parsed file."""

    path: str
    source: Source
    tree: Tree
    places: Places
    names: Names


class Program:
    """The files of one project.

    Keeps what it has parsed for the next file that needs it, within a budget. What has changed on disk is read again after
    `project.renew`.
    """

    def __init__(self, root: str) -> None:
        """`root` is the folder that paths in findings are relative to."""
        self._root = root
        self._project = project_of(root)
        self._looks = self._project.looks
        self._parsed: dict[str, Parsed | None] = {}  # the least recently used first
        self._stamps: dict[str, Stamp | None] = {}
        self._room = _NODES_OF_A_FILE
        self._unlinked: set[str] = (
            set()
        )  # the files whose names may have been looked up in a project that has changed since
        self._asked_for: set[str] = set()  # the files that the one to lint has asked for
        self._held: Parsed | None = None

    # -- files ------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Forget the files that have changed on disk, if it is to be looked at anew."""
        current = project_of(self._root)
        if current is self._project and current.looks == self._looks:
            return
        self._project, self._looks = current, current.looks
        for path in [
            path for path, stamp in self._stamps.items() if stamp is None or stamp_of(path) != stamp
        ]:
            del self._stamps[path]
            self._parsed.pop(path, None)
        self._unlinked = {*self._parsed}

    def _linked(self, path: str) -> Parsed | None:
        """A file that was parsed, with names that are looked up in the project as it is now."""
        found = self._parsed.get(path)
        if found is not None and path in self._unlinked:
            found = self._parsed[path] = found._replace(names=self._names(path, found.tree))
        self._unlinked.discard(path)
        return found

    def open(self, path: str, source: Source) -> Parsed:
        """A file to lint, with this text, which need not be that on disk.

        Raises:
            Unreadable: as for `syntax.parse`.
        """
        self._renew()
        self._make_room()
        self._held = None
        self._asked_for.clear()
        self.imports.begin(path)
        self.imports.give(path, source.text)
        known = self._linked(path)
        if known is None or known.source.text != source.text or known.source.path != source.path:
            self._parsed.pop(path, None)
            known = self._parse(path, source)
            self._stamps[path] = None  # whether that is on disk is not known
        self._keep(path, known)
        return known

    def holding(self, node: Node) -> Parsed | None:
        """The parsed file that a node is in."""
        number = id(node)
        found = self._held  # the answer is often that of the last time
        if found is None or number not in found.tree.number:
            files = reversed(self._parsed.values())
            found = next((file for file in files if file is not None and number in file.tree.number), None)
            if found is None:
                return None
            self._held = found
        self.imports.read(found.path)
        return found

    def tree_of(self, node: Node) -> Tree | None:
        """The tree that a node is in."""
        found = self.holding(node)
        return found.tree if found is not None else None

    def parsed(self, path: str) -> Parsed | None:
        """A file as it is on disk; None if it cannot be read or parsed, or if too many are open."""
        self.imports.read(path)
        if path not in self._asked_for and self._room <= 0:
            return None
        if path not in self._parsed:
            try:
                source = self._source(path)
                self._parsed[path] = self._parse(path, source) if source is not None else None
            except Unreadable:
                self._parsed[path] = None
        found = self._linked(path)
        if (
            path not in self._asked_for
        ):  # also where it was parsed for another one: what is found must not depend on that
            self._asked_for.add(path)
            self._room -= len(found.tree.nodes) if found is not None else 0
        if found is not None:
            self._keep(path, found)
        return found

    def _parse(self, path: str, source: Source) -> Parsed:
        tree, places = parse(source)
        program: Program = proxy(self)  # a weak reference: no circle keeps a tree
        tree.elsewhere = lambda node: program.tree_of(node)
        return Parsed(path, source, tree, places, self._names(path, tree))

    def _names(self, path: str, tree: Tree) -> Names:
        return Names(tree, _Links(proxy(self), path))

    def _source(self, path: str) -> Source | None:
        """The source of a file on disk; None if it is too large to be worth its while. May raise Unreadable."""
        self._stamps[path] = None
        data, stamp = read_with_stamp(path)
        self._stamps[path] = stamp
        self._project.around.note(path, Content(digest_of(data), stamp))
        return source_of(name_of(path, self._root), data) if len(data) <= _LARGEST else None

    def _keep(self, path: str, parsed: Parsed) -> None:
        """Note that a file was used last."""
        self._parsed.pop(path, None)
        self._parsed[path] = parsed

    def _make_room(self) -> None:
        """Drop what was not used for the longest time, until the rest is within the budget."""
        self._room = _NODES_OF_A_FILE
        left = sum(len(parsed.tree.nodes) for parsed in self._parsed.values() if parsed is not None)
        for path, parsed in list(self._parsed.items()):
            if left <= _NODES_KEPT:
                break
            left -= len(parsed.tree.nodes) if parsed is not None else 0
            del self._parsed[path]

    # -- imports ----------------------------------------------------------------------------------------------

    @property
    def imports(self) -> Imports:
        return self._project.imports

    def definition(self, importer: str, name: str) -> Binding | None:
        """The one place in another file that binds what this file imports under a name."""
        found = self.imports.target(importer, name).definition
        if found is None or not found.name or found.attributes:
            return None
        parsed = self.parsed(found.file)
        bindings = parsed.names.exported(found.name) if parsed is not None else []
        return bindings[0] if len(bindings) == 1 else None

    def importers(self, path: str, name: str, called: str | None) -> list[cst.Module]:
        """The files that import what a file binds to a name, and may call something of another name."""
        files = self.imports.importers(path, name)
        if called is not None:
            files = [file for file in files if self.imports.calls(path, file, called)]
        return [parsed.tree.root for parsed in map(self.parsed, files) if parsed is not None]

    def beside(self, path: str, words: tuple[str, ...]) -> list[cst.Module] | None:
        """The other files of the programs that a file is part of, with one of these words if any; None if that is not known."""
        files = self.imports.beside(path, words)
        if files is None or len(files) > _MOST_BESIDE:
            return None
        parsed = [found for file in files if (found := self.parsed(file)) is not None]
        return [found.tree.root for found in parsed] if len(parsed) == len(files) else None


class _Links:
    """The imports of one file: implements `facts.values.names.Links`."""

    def __init__(self, program: Program, path: str) -> None:
        self._program = program
        self._path = path

    def outside(self, name: str) -> str | None:
        target = self._program.imports.target(self._path, name)
        is_ours = target.definition is not None and bool(target.definition.name)
        return target.outside or (None if is_ours else name)

    def starred(self, modules: tuple[str, ...], name: str) -> str | None:
        return self._program.imports.starred(self._path, modules, name)

    def names(self, node: Node) -> Names | None:
        found = self._program.holding(node)
        return found.names if found is not None else None

    def definition(self, name: str) -> Binding | None:
        return self._program.definition(self._path, name)

    def ancestors(self, name: str) -> frozenset[str] | None:
        return self._program.imports.ancestors(self._path, name)

    def may_have(self, name: str, member: str) -> bool:
        return self._program.imports.may_have(self._path, name, member)

    def is_function(self, name: str) -> bool:
        return self._program.imports.is_function(self._path, name)

    def importers(self, name: str, called: str | None) -> list[cst.Module]:
        return self._program.importers(self._path, name, called)

    def beside(self, words: tuple[str, ...]) -> list[cst.Module] | None:
        return self._program.beside(self._path, words)

    def attributes(self) -> frozenset[str]:
        return self._program.imports.attributes_of_imports(self._path)


@lru_cache(4)
def program_of(root: str) -> Program:
    """The program whose files are named relative to this folder."""
    return Program(root)
