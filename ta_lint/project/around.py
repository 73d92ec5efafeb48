"""The files around a file: those that it imports, and those that import it, as their import statements say."""

import os
import re
from _blake2 import blake2b  # `hashlib` loads OpenSSL, which takes longer than a run over a few files
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, TypeVar

from ta_lint.core.errors import Unreadable
from ta_lint.core.letters import searchable
from ta_lint.core.libraries import is_ours
from ta_lint.core.reading import Stamp, read_with_stamp, stamp_of
from ta_lint.project.layout import PACKAGE, Layout
from ta_lint.project.trail import Importers, Surface

T = TypeVar("T")
Names = frozenset[str] | None
"""The names that a statement imports from a module; None for all of them."""

_DEEPEST = 4  # packages of packages whose import may give what a file defines
MOST_IMPORTERS = 8  # that say something about what they import
_MOST_USERS = 24  # what more files import is a utility, which says nothing about them
_READ_LAST = 64  # files whose bytes are kept
_FOLDERS_LAST = 16  # of which the importers are kept

# A line feed first, as `re` searches fastest for a letter: of a file, `_lines` is searched.
_FROM = re.compile(rb"\n[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]{0,4000}\)|[^\n]*)")
_IMPORT = re.compile(rb"\n[ \t]*import[ \t]+([^\n#;]+)")
_OTHER = re.compile(
    rb"\n[ \t]*(?:from|import)[ \t]+(?:flax|jax|keras|mindspore|mxnet|paddle|tensorflow|tinygrad|warp)\b"
)
_AT_THE_TOP = re.compile(rb"\n(?:(?:(?:async[ ]+)?def|class)[ ]+(\w+)|(\w+)[ \t]*[:=])")
_NAME = re.compile(rb"\w+")
_ON_SELF = re.compile(rb"self\.(\w+)")
_METHOD = re.compile(rb"\n[ \t]+(?:async[ ]+)?def[ ]+(\w+)")
_IN_A_CLASS = re.compile(rb"\n[ \t]+(?:async[ ]+)?(?:def[ ]+)?(\w+)[ \t]*[:=(]")


class Around:
    """The files around each file of a project. Each is read for its imports once, and its bytes are not kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.trail = layout.trail
        self.contents: dict[str, Content] = {}
        """The content of each file as it was read."""
        self.changing: set[str] = set()
        """The files that were read twice, with another content each time."""
        self._statements: dict[str, list[tuple[str, list[str]]]] = {}
        self._links: dict[str, str] = {}
        self._tops: dict[str, frozenset[str]] = {}
        self._resolved: dict[str, list[tuple[str, list[str]]]] = {}
        """The import statements that answers are taken from: those on disk, or of an unsaved text."""
        self._ours: dict[str, bool] = {}
        self._attributes: dict[str, frozenset[str]] = {}
        self._matched: dict[tuple[str, str, bytes], bool] = {}
        self._answers: dict[Callable[[bytes], frozenset[object]], dict[str, frozenset[object]]] = {}
        self.bytes_of = lru_cache(_READ_LAST)(self._bytes_of)
        self._importing = lru_cache(_FOLDERS_LAST)(self._find_importing)

    def _bytes_of(self, path: str) -> bytes:
        """The bytes of a file as they are searched, empty if it cannot be read."""
        try:
            data, stamp = read_with_stamp(path)
        except Unreadable:
            data, stamp = b"", None
            self.note(path, Content("", None))
        else:
            self.note(path, Content(digest_of(data), stamp))
        text = searchable(data)
        if path not in self._links:  # while the bytes are at hand
            lines = _lines(text)
            statements = self._statements[path] = list(_statements(lines))
            seen = (
                is_ours(text),
                statements,
                sorted({*_AT_THE_TOP.findall(lines)}),
                _OTHER.search(lines) is None,
            )
            self._links[path] = digest_of(repr(seen).encode("utf-8", "surrogatepass"))
        return text

    def whole(self, path: str) -> bytes:
        """The bytes of a file as it is on disk.

        Raises:
            Unreadable: as for `core.reading.read`.
        """
        data, stamp = read_with_stamp(path)
        self.note(path, Content(digest_of(data), stamp))
        return data

    def unchanged(self) -> set[str]:
        """The files that are on disk as they were read; those whose stamp does not tell are read again."""
        found: set[str] = set()
        for path, content in self.contents.items():
            if content.stamp is None or content.stamp != stamp_of(path):
                now = content_of(path)
                if now.digest != content.digest:
                    continue
                self.contents[path] = now
            found.add(path)
        return found - self.changing

    def forget_unsaved(self) -> None:
        """Take the import statements on disk again for those of texts that were given."""
        for path, written in list(self._resolved.items()):
            if self.links(path) and written != self._statements[path]:
                self._forget_answers()
                return

    def _forget_answers(self) -> None:
        self.trail.clear()
        self._resolved.clear()
        self._importing.cache_clear()

    def take(self, other: "Around", paths: AbstractSet[str]) -> None:
        """Take over what another one knows of files each by itself."""
        for name in ("contents", "_statements", "_links", "_tops", "_ours", "_attributes"):
            known = vars(other)[name]
            vars(self)[name].update({path: known[path] for path in paths & known.keys()})
        self._matched.update({key: value for key, value in other._matched.items() if key[0] in paths})
        for words, answers in other._answers.items():
            self._answers[words] = {path: answers[path] for path in paths & answers.keys()}

    def note(self, path: str, content: "Content") -> None:
        """Note the content with which a file was read."""
        if self.contents.setdefault(path, content).digest != content.digest:
            self.changing.add(path)

    def links(self, path: str) -> str:
        """A digest of what decides which files a file imports, and what it hands on."""
        if path not in self._links:
            self.bytes_of(path)
        return self._links[path]

    def surface(self, path: str, words: Callable[[bytes], frozenset[T]]) -> tuple[object, ...]:
        """What other files see of a file without its text: its imports, names and attributes, and which words it has."""
        answers = sorted(map(repr, self._answer(path, words)))
        return self.links(path), sorted(self.attributes(path)), answers

    def said(self, path: str, data: bytes, words: Callable[[bytes], frozenset[T]]) -> frozenset[T]:
        """The words that the files around one with these bytes have, if they are about no other framework.

        Of a model and a loader that it is given, a file can train with no word of PyTorch. `words` finds them in the bytes of
        a file, as `core.letters.searchable` gives them. It is asked once a file.
        """
        return frozenset[T]().union(*(self._answer(file, words) for file in self.files(path, data)))

    def _answer(self, path: str, words: Callable[[bytes], frozenset[T]]) -> frozenset[T]:
        self.trail.add(Surface(path))
        answers = self._answers.setdefault(words, {})
        if path not in answers:
            text = self.bytes_of(path)
            counts = self._is_ours(path) or _OTHER.search(_lines(text)) is None
            answers[path] = words(text) if counts else frozenset()
        return answers[path]  # type: ignore[return-value]

    def is_used_by_ours(self, path: str, data: bytes) -> bool:
        """Whether a file about PyTorch imports this one, or is imported by it, and this one is about no other framework."""
        return _OTHER.search(_lines(data)) is None and any(map(self._is_ours, self.files(path, data)))

    def files(self, path: str, data: bytes) -> list[str]:
        """The files that define what one with these bytes imports, and those nearby that import it; none that many import."""
        is_known = path in self._resolved and path.endswith(".py")
        if is_known and self._resolved[path] != list(_statements(_lines(data))):  # an editor has another text
            self._forget_answers()
        return self.trail.remembered(("files", path), lambda: self._files(path, data))

    def _files(self, path: str, data: bytes) -> list[str]:
        used = [file for file in self._sources(path, data) if len(self._importers(file)) <= _MOST_USERS]
        users = self._importers(path)
        return sorted({*used, *(users if len(users) <= MOST_IMPORTERS else ())} - {path})

    def users(self, path: str) -> set[str] | None:
        """The files nearby that are about PyTorch and import what a file defines; None if there are many."""
        found = self._importers(path)
        return set(found) if len(found) <= _MOST_USERS else None

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
        return ImportedBy(found, importing.using.get(path, []))

    def _find_importing(self, folder: str) -> "_Importing":
        """What the files near those of a folder import."""
        found = _Importing({}, {})
        for place, file in enumerate(self._layout.nearby(os.path.join(folder, PACKAGE))):
            for module, names in self._imports(file).items():
                found.naming.setdefault(module, []).append((place, file, names))
            for source in self._sources(file) if self._is_ours(file) and not _is_test(file) else ():
                users = found.using.setdefault(source, [])
                if len(users) <= _MOST_USERS:
                    users.append(file)
        return found

    def packages(self, path: str) -> set[str]:
        """A file and the packages whose import may give what it defines."""
        return {path, *islice(_folders(path), _DEEPEST)}

    def attributes(self, path: str) -> frozenset[str]:
        """The names that a file may bind in a class or on `self`, among others; methods as `def step`."""
        self.trail.add(Surface(path))
        if path not in self._attributes:
            data = _lines(self.bytes_of(path))
            methods = (b"def " + name for name in _METHOD.findall(data))
            found = {*_ON_SELF.findall(data), *_IN_A_CLASS.findall(data), *methods}
            self._attributes[path] = frozenset(name.decode("utf-8", "replace") for name in found)
        return self._attributes[path]

    def calls(self, path: str, name: str) -> bool:
        """Whether a file may call something of this name."""
        return self._matches(path, name, rb"[ \t\\\n]*\(")

    def has(self, path: str, word: str) -> bool:
        """Whether a file has a word: a whole name, or plain text if it is no name, as in the keywords of checks."""
        return self._matches(path, word, rb"(?!\w)" if word.isidentifier() else b"")

    def _matches(self, path: str, word: str, then: bytes) -> bool:
        """Whether a file has a word, from its first letter if it is a name, with this behind it."""
        key = path, word, then
        if key not in self._matched:
            data, written = self.bytes_of(path), word.encode()
            found = written in data  # in most files it is not, and this is fastest
            if found and then:
                name = re.escape(written)
                found = re.search(name + rb"(?<!\w" + name + rb")" + then, data) is not None
            self._matched[key] = found
        return self._matched[key]

    def _is_ours(self, path: str) -> bool:
        self.trail.add(Surface(path))
        if path not in self._ours:
            self._ours[path] = is_ours(self.bytes_of(path))
        return self._ours[path]

    def _sources(self, path: str, data: bytes | None = None) -> set[str]:
        """The files that a file imports from, and those from which a package among them takes what is imported."""
        return self.trail.remembered(("sources", path), lambda: self._find_sources(path, data))

    def _find_sources(self, path: str, data: bytes | None) -> set[str]:
        found: set[str] = set()
        for module, names in self._imports(path, data).items():
            file = self._layout.file(module)
            if file is not None:
                found.add(file)
                given = self._handed_on(file)
                found.update(*(given.values() if names is None else map(given.get, names & given.keys())))
        return found

    def _handed_on(self, path: str) -> dict[str, frozenset[str]]:
        """The names that the `__init__.py` of a package imports, with the files that may define each; nothing for other files.

        Of packages that import each other it depends on the first, so that only its own answer is remembered.
        """
        return self.trail.remembered(("handed on", path), lambda: self._find_handed_on(path, {}))

    def _find_handed_on(
        self, path: str, known: dict[str, dict[str, frozenset[str]]]
    ) -> dict[str, frozenset[str]]:
        if path in known or os.path.basename(path) != PACKAGE:
            return known.get(path, {})
        found = known[path] = {}
        for module, names in self._imports(path).items():
            if (file := self._layout.file(module)) is not None:
                given, here = self._find_handed_on(file, known), frozenset({file})
                for name in self._defined(file) | given.keys() if names is None else names:
                    definers = given.get(name, here)
                    found[name] = found[name] | definers if name in found else definers
        return found

    def _defined(self, path: str) -> AbstractSet[str]:
        """The names that a file binds at its top."""
        self.trail.add(Surface(path))
        if path not in self._tops:
            found = _AT_THE_TOP.findall(_lines(self.bytes_of(path)))
            self._tops[path] = frozenset((first or second).decode() for first, second in found)
        return self._tops[path]

    def _importers(self, path: str) -> list[str]:
        """The files nearby that are about PyTorch and import what a file defines, without tests; not all, if there are many."""
        return self.imported_by(path).using

    def _imports(self, path: str, data: bytes | None = None) -> dict[str, Names]:
        """The files and folders of the project that the import statements of a file name, with the names taken from each."""
        self.trail.add(Surface(path))
        return self.trail.remembered(("imports", path), lambda: self._find_imports(path, data))

    def _find_imports(self, path: str, data: bytes | None) -> dict[str, Names]:
        found: dict[str, Names] = {}
        if data is None:
            self.links(path)
        statements = self._statements[path] if data is None else list(_statements(_lines(data)))
        self._resolved[path] = statements
        for package, written in statements:
            for module, names in self._modules(path, package, written):
                found[module] = _both(names, found.get(module, frozenset()))
        return found

    def _modules(self, path: str, package: str, names: list[str]) -> Iterator[tuple[str, Names]]:
        """The modules that `from package import names` names in a file; without names, all are meant."""
        rest = package.lstrip(".")
        dots, parts = package[: len(package) - len(rest)], rest.split(".") if rest else []
        if not (dots or parts):
            return  # what follows the last comma of `import a, `, in prose
        first = dots or parts.pop(0)
        module = self._layout.module(path, first)
        if module is None and parts and not dots:
            module = self._layout.checkout(path, first, parts[0])
        for part in parts:
            module = self._layout.inside(module, part) if module is not None else None
        if module is None:
            return
        yield module, frozenset(names) or None
        if not module.endswith(".py"):
            inner = (self._layout.inside(module, name) for name in names)
            yield from ((file, None) for file in inner if file is not None)


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
    """The files nearby that import a file."""

    naming: dict[str, Names]
    """Those that name it, or a package that it is in, with the names that they take from there."""
    using: list[str]
    """Those about PyTorch that import what it defines, also through other packages; not all, if there are many."""


class _Importing(NamedTuple):
    """What the files nearby import."""

    naming: dict[str, list[tuple[int, str, Names]]]
    """By the file or folder that they name: the place of each file, the file, and what it takes from there."""
    using: dict[str, list[str]]
    """By the file that defines what they import: as in `ImportedBy`."""


def _statements(data: bytes) -> Iterator[tuple[str, list[str]]]:
    """The packages that the import statements of a file with these lines name, with the names taken from each; all if none."""
    for match in _FROM.finditer(data):
        yield match[1].decode(), [name.decode() for name in _NAME.findall(match[2]) if name != b"as"]
    for match in _IMPORT.finditer(data):
        for item in match[1].decode("utf-8", "replace").split(","):
            yield item.split(" as ")[0].strip(), []


def content_of(path: str) -> "Content":
    """What a file on disk holds now."""
    try:
        data, stamp = read_with_stamp(path)
    except Unreadable:
        return Content("", None)
    return Content(digest_of(data), stamp)


def digest_of(data: bytes) -> str:
    """A digest of data."""
    return blake2b(data, digest_size=16).hexdigest()


def _lines(data: bytes) -> bytes:
    """The bytes of a file with a line feed before each line, the first included."""
    return b"\n" + data


def _is_test(path: str) -> bool:
    """Whether a file is a test: it may import anything, and how it calls that says nothing about training."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) == "tests" or name == "conftest.py" or name.startswith("test_")


def _folders(path: str) -> Iterator[str]:
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder
