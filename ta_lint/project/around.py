"""The files around a file: those that it imports, and those that import it, as their import statements say."""

import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from ta_lint.core.digest import digest_of
from ta_lint.core.errors import Unreadable
from ta_lint.core.letters import searchable
from ta_lint.core.reading import Stamp, read_with_stamp, stamp_of
from ta_lint.project.index import Index
from ta_lint.project.layout import PACKAGE, Layout
from ta_lint.project.outline import (
    ALL,
    Outline,
    Statement,
    is_of_another,
    lines,
    outline_of,
    statements,
)
from ta_lint.project.trail import Importers, Surface

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Names = frozenset[str] | None
"""The names that a statement imports from a module; None for all of them."""

_DEEPEST = 4  # packages of packages whose import may give what a file defines
MOST_IMPORTERS = 8  # that say something about what they import
_MOST_USERS = 24  # what more files import is a utility, which says nothing about them
_MOST_STARRED = 300  # files; of a package that imports everything from more, nobody is asked for a name
_READ_LAST = 64  # files whose bytes are kept
_FOLDERS_LAST = 16  # of which the importers are kept

_ON_SELF = re.compile(rb"self\.(\w+)")
_METHOD = re.compile(rb"\n[ \t]+(?:async[ ]+)?def[ ]+(\w+)")
_IN_A_CLASS = re.compile(rb"\n[ \t]+(?:async[ ]+)?(?:def[ ]+)?(\w+)[ \t]*[:=(]")


class WordFinder(Protocol[T_co]):
    """Finds words in the bytes of a file, as `core.letters.searchable` gives them; `key` tells which."""

    key: str

    def __call__(self, data: bytes) -> frozenset[T_co]: ...


class Around:
    """The files around each file of a project. Each is read for its imports once, and its bytes are not kept."""

    def __init__(self, layout: Layout, index: Index) -> None:
        self._layout = layout
        self._index = index
        self.trail = layout.trail
        self.contents: dict[str, Content] = {}
        """The content of each file as it was read."""
        self.changing: set[str] = set()
        """The files that were read twice, with another content each time."""
        self._outlines: dict[str, Outline] = {}
        self._resolved: dict[str, list[Statement]] = {}
        """The import statements that answers are taken from: those on disk, or of an unsaved text."""
        self._read = lru_cache(_READ_LAST)(self._read_file)
        self._importing = lru_cache(_FOLDERS_LAST)(self._find_importing)

    def bytes_of(self, path: str) -> bytes:
        """The bytes of a file as they are searched, empty if it cannot be read."""
        return self._read(path)[0]

    def whole(self, path: str) -> bytes:
        """The bytes of a file as it is on disk, none if it cannot be read."""
        data, content = _content(path)
        self.note(path, content)
        return data

    def _read_file(self, path: str) -> tuple[bytes, str]:
        """The bytes of a file as they are searched, and a digest of them as they are."""
        data, content = _content(path)
        self.note(path, content)
        text = searchable(data)
        if path not in self._outlines:  # while the bytes are at hand
            known = self._index.find(path)
            if known is None or known.digest != content.digest:
                known = outline_of(text, *content)
                self._index.keep(path, known)
            elif known.stamp != content.stamp:
                known.stamp = content.stamp
                self._index.keep(path, known)
            self._outlines[path] = known
        return text, content.digest

    def _outline(self, path: str) -> Outline:
        """The outline of a file as it is."""
        if path not in self._outlines:
            known = self._index.find(path)
            if known is not None and known.stamp is not None and known.stamp == stamp_of(path):
                self.note(path, Content(known.digest, known.stamp))
                self._outlines[path] = known
            else:
                self._read(path)
        return self._outlines[path]

    def ask(
        self, path: str, question: str, answer: Callable[[bytes], object], meaning: Callable[[Any], T]
    ) -> T:
        """What the answer to a question about the bytes of a file means; each file is asked once, also by later runs.

        The answer can be written as JSON, and is not the same for another question.
        """
        outline = self._outline(path)
        if question not in outline.meanings:
            if question not in outline.answers:
                text, digest = self._read(path)
                if digest != outline.digest:  # it changes meanwhile
                    return meaning(answer(text))
                outline.answers[question] = answer(text)
                self._index.keep(path, outline)
            outline.meanings[question] = meaning(outline.answers[question])
        return outline.meanings[question]  # type: ignore[no-any-return]

    def is_unchanged(self) -> bool:
        """Whether all files are on disk as they were read; those whose stamp does not tell are read again."""
        for path, content in self.contents.items():
            if content.stamp is None or content.stamp != stamp_of(path):
                now = content_of(path)
                if now.digest != content.digest:
                    return False
                self.contents[path] = now
        return not self.changing

    def forget_unsaved(self) -> None:
        """Take the import statements on disk again for those of texts that were given."""
        for path, written in list(self._resolved.items()):
            if written != self._outline(path).statements:
                self._forget_answers()
                return

    def _forget_answers(self) -> None:
        self.trail.clear()
        self._resolved.clear()
        self._importing.cache_clear()

    def note(self, path: str, content: "Content") -> None:
        """Note the content with which a file was read."""
        if self.contents.setdefault(path, content).digest != content.digest:
            self.changing.add(path)

    def links(self, path: str) -> str:
        """A digest of what decides which files a file imports, and what it hands on."""
        return self._outline(path).links

    def surface(self, path: str, words: WordFinder[T]) -> tuple[object, ...]:
        """What other files see of a file without its text: its imports, names and attributes, and which words it has."""
        answers = sorted(map(repr, self._answer(path, words)))
        return self.links(path), sorted(self.attributes(path)), answers

    def said(self, path: str, data: bytes, words: WordFinder[T]) -> frozenset[T]:
        """The words that the files around one with these bytes have, if they are about no other framework.

        Of a model and a loader that it is given, a file can train with no word of PyTorch.
        """
        return frozenset[T]().union(*(self._answer(file, words) for file in self.files(path, data)))

    def _answer(self, path: str, words: WordFinder[T]) -> frozenset[T]:
        self.trail.add(Surface(path))
        outline = self._outline(path)
        if not outline.is_ours and outline.is_of_another:
            return frozenset()
        return self.ask(path, f"words {words.key}", lambda text: sorted(words(text), key=repr), _as_words)

    def is_used_by_ours(self, path: str, data: bytes) -> bool:
        """Whether a file about PyTorch imports this one, or is imported by it, and this one is about no other framework."""
        return not is_of_another(statements(lines(data))) and any(map(self._is_ours, self.files(path, data)))

    def files(self, path: str, data: bytes) -> list[str]:
        """The files that define what one with these bytes imports, and those nearby that import it; none that many import."""
        is_known = path in self._resolved and path.endswith(".py")
        if is_known and self._resolved[path] != [*statements(lines(data))]:  # an editor has another text
            self._forget_answers()
        return self.trail.remembered(("files", path), lambda: self._files(path, data))

    def _files(self, path: str, data: bytes) -> list[str]:
        used = [file for file in self._near_sources(path, data) if len(self._importers(file)) <= _MOST_USERS]
        users = self._importers(path)
        return sorted({*used, *(users if len(users) <= MOST_IMPORTERS else ())} - {path})

    def is_in_library(self, path: str) -> bool:
        """Whether the package that a file is in is so large that each file sees but a part of it."""
        return self.imported_by(path).in_library

    def _near_sources(self, path: str, data: bytes) -> list[str]:
        """The files that a file imports from; in a large package without those outside the folder above its own, which all of it uses."""
        used = sorted(self._sources(path, data))
        if not self.is_in_library(path):
            return used
        above = os.path.dirname(os.path.dirname(path)) + os.sep
        return [file for file in used if file.startswith(above)]

    def users(self, path: str) -> set[str] | None:
        """The files nearby that are about PyTorch and import what a file defines; None if there are many."""
        found = self._importers(path)
        return set(found) if len(found) <= _MOST_USERS else None

    def scripts(self, path: str) -> list[str]:
        """The files nearby, but for tests, that import what a file defines, also those that say nothing of PyTorch; none if there are many."""
        known = self.imported_by(path)
        found = {*known.using, *known.launching}
        return sorted(found) if len(found) <= _MOST_USERS else []

    def imports(self, path: str) -> frozenset[str]:
        """The files and folders of the project that a file names in import statements."""
        return frozenset(self._imports(path))

    def may_import(self, path: str, name: str | None = None) -> list[str]:
        """The files nearby that import a name, or anything, from a file or from a package that it is in."""
        wanted = frozenset({name}) if name is not None else None
        return [file for file, names in self.imported_by(path).naming.items() if _meet(names, wanted)]

    def imported_by(self, path: str) -> "ImportedBy":
        """The files nearby that import a file, in both meanings."""
        return self.trail.asked_again(Importers(path), lambda: self._find_imported_by(path))

    def _find_imported_by(self, path: str) -> "ImportedBy":
        importing = self._importing(os.path.dirname(path))
        found: dict[str, Names] = {}
        named = (entry for module in self.packages(path) for entry in importing.naming.get(module, ()))
        for _, file, names in sorted(named, key=itemgetter(0)):
            found[file] = _both(names, found.get(file, frozenset()))
        launching = importing.launching.get(path, [])
        return ImportedBy(found, importing.using.get(path, []), launching, self._layout.is_large(path))

    def _find_importing(self, folder: str) -> "_Importing":
        """What the files near those of a folder import."""
        found = _Importing({}, {}, {})
        for place, file in enumerate(self._layout.nearby(os.path.join(folder, PACKAGE))):
            for module, names in self._imports(file).items():
                found.naming.setdefault(module, []).append((place, file, names))
            is_ours = self._is_ours(file)
            if _is_test(file) or (not is_ours and self._layout.is_large(file)):
                continue
            for source in self._sources(file):
                users = (found.using if is_ours else found.launching).setdefault(source, [])
                if len(users) <= _MOST_USERS:
                    users.append(file)
        return found

    def packages(self, path: str) -> set[str]:
        """A file and the packages whose import may give what it defines."""
        return {path, *islice(_folders(path), _DEEPEST)}

    def attributes(self, path: str) -> frozenset[str]:
        """The names that a file may bind in a class or on `self`, among others; methods as `def step`."""
        self.trail.add(Surface(path))
        return self.ask(path, "attributes", _attributes, _as_names)

    def calls(self, path: str, name: str) -> bool:
        """Whether a file may call something of this name."""
        return self._matches(path, name, rb"[ \t\\\n]*\(")

    def has(self, path: str, word: str) -> bool:
        """Whether a file has a word: a whole name, or plain text if it is no name, as in the keywords of checks."""
        return self._matches(path, word, rb"(?!\w)" if word.isidentifier() else b"")

    def _matches(self, path: str, word: str, then: bytes) -> bool:
        """Whether a file has a word, from its first letter if it is a name, with this behind it."""
        return self.ask(path, f"{word} {then.decode()}", lambda text: _has(text, word.encode(), then), bool)

    def _is_ours(self, path: str) -> bool:
        self.trail.add(Surface(path))
        return self._outline(path).is_ours

    def _sources(self, path: str, data: bytes | None = None) -> set[str]:
        """The files that a file imports from, and those from which a package among them takes what is imported."""
        return self.trail.remembered(("sources", path), lambda: self._find_sources(path, data))

    def _find_sources(self, path: str, data: bytes | None) -> set[str]:
        found: set[str] = set()
        for module, names in self._imports(path, data).items():
            file = self._layout.file(module)
            if file is not None:
                found.add(file)
                if _is_package(file):
                    found.update(*(self._definers(module, name) for name in names or (None,)))
        return found

    def _definers(self, module: str, name: str | None) -> set[str]:
        """The files that may define a name of a module, or any name."""
        return self.trail.remembered(
            ("definers", module, name), lambda: self._find_definers(module, name, set())
        )

    def _find_definers(self, module: str, name: str | None, seen: set[tuple[str, str | None]]) -> set[str]:
        """As `_definers`; `seen` are the questions that lead here, as packages may import each other.

        A package has first what it takes by name, then what it defines, then its modules, and last what comes by `*`, for
        which other files are read.
        """
        if (module, name) in seen:
            return set()
        seen.add((module, name))
        file = self._layout.file(module)
        here = {file} if file is not None else set()
        package = file if file is not None and _is_package(file) else None
        if name is None:
            names = self._taken(package).keys() | self._starred(package).keys() if package is not None else ()
            return here.union(*(self._find_definers(module, one, seen) for one in names))
        if package is not None:
            sources = self._taken(package).get(name, [(module, name)])
            if (module, name) not in sources:  # it is in `from . import blocks`, a module of the package
                return set().union(*(self._find_definers(*source, seen) for source in sources))
            if name in self._defined(package):
                return here
        inner = self._layout.inside(module, name) if not module.endswith(".py") else None
        if inner is not None:
            return self._find_definers(inner, None, seen)
        starred = self._starred(package).get(name, ()) if package is not None else ()
        return set().union(*(self._find_definers(one, name, seen) for one in starred)) or here

    def _taken(self, package: str) -> dict[str, list[tuple[str, str | None]]]:
        """The names that the `__init__.py` of a package takes from elsewhere: modules, and names in them; no name for a whole module."""
        return self.trail.remembered(("taken", package), lambda: self._find_taken(package))

    def _find_taken(self, package: str) -> dict[str, list[tuple[str, str | None]]]:
        found: dict[str, list[tuple[str, str | None]]] = {}
        for written, taken in self._written(package):
            if ALL in taken:
                continue
            module = self._layout.meant(package, written)
            for item in taken or [f"{ALL} as {written}"]:
                name, _, bound = item.partition(" as ")
                sources = found.setdefault(bound or name, [])
                if module is not None:
                    sources.append((module, name if name != ALL else None))
        return found

    def _starred(self, package: str) -> dict[str, list[str]]:
        """The modules that give the `__init__.py` of a package a name by `*`, by name; of packages among them also theirs."""
        return self.trail.remembered(("starred from", package), lambda: self._find_starred(package))

    def _find_starred(self, package: str) -> dict[str, list[str]]:
        modules: dict[str, str] = {}  # by file
        pending = [package]
        while pending:
            importer = pending.pop()
            starred = [written for written, taken in self._written(importer) if ALL in taken]
            if len(modules) + len(starred) > _MOST_STARRED:
                return {}
            for written in starred:
                module = self._layout.meant(importer, written)
                file = self._layout.file(module) if module is not None else None
                if module is not None and file is not None and file != package and file not in modules:
                    modules[file] = module
                    if _is_package(file):
                        pending.append(file)
        found: dict[str, list[str]] = {}
        for file, module in modules.items():
            names = self._defined(file)
            for name in names | self._taken(file).keys() if _is_package(file) else names:
                found.setdefault(name, []).append(module)
        return found

    def _defined(self, path: str) -> frozenset[str]:
        """The names that a file binds at its top."""
        self.trail.add(Surface(path))
        return self._outline(path).bound

    def _importers(self, path: str) -> list[str]:
        """The files nearby that are about PyTorch and import what a file defines, without tests; not all, if there are many."""
        return self.imported_by(path).using

    def _imports(self, path: str, data: bytes | None = None) -> dict[str, Names]:
        """The files and folders of the project that the import statements of a file name, with the names taken from each."""
        self.trail.add(Surface(path))
        return self.trail.remembered(("imports", path), lambda: self._find_imports(path, data))

    def _find_imports(self, path: str, data: bytes | None) -> dict[str, Names]:
        if data is not None:
            self._resolved[path] = [*statements(lines(data))]
        found: dict[str, Names] = {}
        for written, taken in self._written(path):
            module = self._layout.meant(path, written)
            if module is None:
                continue
            names = {item.partition(" as ")[0] for item in taken}
            given = frozenset(names) if names and ALL not in names else None
            found[module] = _both(given, found.get(module, frozenset()))
            if not module.endswith(".py"):
                for name in names:
                    inner = self._layout.inside(module, name)
                    if inner is not None:
                        found[inner] = None
        return found

    def _written(self, path: str) -> list[Statement]:
        """The import statements of a file that answers are taken from."""
        self.trail.add(Surface(path))
        if path not in self._resolved:
            self._resolved[path] = self._outline(path).statements
        return self._resolved[path]


def _both(one: Names, other: Names) -> Names:
    return None if one is None or other is None else one | other


def _meet(one: Names, other: Names) -> bool:
    """Whether a name may be among both."""
    return one is None or other is None or not one.isdisjoint(other)


class Content(NamedTuple):
    """What a file held: a digest, empty if it cannot be read, and a stamp as of `core.reading.read_with_stamp`."""

    digest: str
    stamp: Stamp | None


class ImportedBy(NamedTuple):
    """The files nearby that import a file, and how large the package is that it is in."""

    naming: dict[str, Names]
    """Those that name it, or a package that it is in, with the names that they take from there."""
    using: list[str]
    """Those about PyTorch that import what it defines, also through other packages; not all, if there are many."""
    launching: list[str]
    """The same of those that say nothing of PyTorch, in packages that are not large."""
    in_library: bool
    """Whether the package that it is in is large."""


class _Importing(NamedTuple):
    """What the files nearby import."""

    naming: dict[str, list[tuple[int, str, Names]]]
    """By the file or folder that they name: the place of each file, the file, and what it takes from there."""
    using: dict[str, list[str]]
    launching: dict[str, list[str]]
    """Both by the file that defines what they import: as in `ImportedBy`."""


def content_of(path: str) -> "Content":
    """What a file on disk holds now."""
    return _content(path)[1]


def _content(path: str) -> "tuple[bytes, Content]":
    """The bytes of a file, empty if it cannot be read, and what they are."""
    try:
        data, stamp = read_with_stamp(path)
    except Unreadable:
        return b"", Content("", None)
    return data, Content(digest_of(data), stamp)


def _attributes(text: bytes) -> str:
    found = lines(text)
    methods = (b"def " + name for name in _METHOD.findall(found))
    names = {*_ON_SELF.findall(found), *_IN_A_CLASS.findall(found), *methods}
    return ",".join(sorted(name.decode() for name in names))


def _as_names(written: str) -> frozenset[str]:
    return frozenset(written.split(",")) if written else frozenset()


def _as_words(written: "list[Any]") -> "frozenset[Any]":
    """Words as they were before JSON, which makes lists of tuples."""
    return frozenset(tuple(word) if isinstance(word, list) else word for word in written)


def _has(data: bytes, word: bytes, then: bytes) -> bool:
    """Whether the bytes of a file have a word, from its first letter if it is a name, with this behind it."""
    if word not in data:  # as in most files, and this is fastest
        return False
    name = re.escape(word)
    return not then or re.search(name + rb"(?<!\w" + name + rb")" + then, data) is not None


def _is_package(path: str) -> bool:
    return os.path.basename(path) == PACKAGE


def _is_test(path: str) -> bool:
    """Whether a file is a test: it may import anything, and how it calls that says nothing about training."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) == "tests" or name == "conftest.py" or name.startswith("test_")


def _folders(path: str) -> Iterator[str]:
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder
