"""The cache: the findings of files that have not changed since, and what each file of the project shows of itself.

A folder with one cache file per set of settings. It holds the findings of each linted file, and the state of the disk that
they all hold for: a look-up that found nothing depends on that as much as one that found something. One more file, for all
settings, holds the outlines (`project.outline`): each holds for the file that it was made of, whatever else changes.

Cache files are replaced and never edited (`signed`), so no lock is needed: a reader sees the old one or the new one, a killed
process leaves the old one, and if two processes write at once, some files may be linted again.
"""

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ta_lint import __version__
from ta_lint.core.digest import digest_of
from ta_lint.core.errors import Unreadable
from ta_lint.core.files import is_within
from ta_lint.core.reading import Stamp, read, read_with_stamp, stamp_of
from ta_lint.file import name_of
from ta_lint.project.around import Content, content_of
from ta_lint.project.project import project_of
from ta_lint.project.trail import ANY, Importers, Name, Surface, WholeText
from ta_lint.signed import LARGEST, MAGIC, SignedFile, signing_key

if TYPE_CHECKING:
    from ta_lint.core.config import Config
    from ta_lint.core.finding import Finding, Site
    from ta_lint.file import File
    from ta_lint.project.project import Project

FOLDER = ".ta_cache"

_DAYS_KEPT = 30  # since the last lookup of a file
_BYTES_KEPT = LARGEST  # per cache folder; a linted file takes 2 KB
_ENTRIES_KEPT = 100_000  # per set of settings
_SECONDS_BETWEEN_WRITES = 2.0

_NAME = re.compile(r"(?:findings-[0-9a-f]{32}\.json|outlines-[0-9a-f]{32}\.txt)")
_LEFT_OVER = re.compile(rf"\.{_NAME.pattern}\.[0-9a-f]{{8}}")  # by a killed process
_TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# This folder is the cache of ta-lint, see https://bford.info/cachedir/; `ta-lint clean` removes it.
"""
_MARKS = {"CACHEDIR.TAG": _TAG, ".gitignore": "# made by ta-lint\n*\n"}

# Settings that decide which files are linted and how findings are used, but not what is found in a file.
_NOT_DECISIVE = frozenset(
    "directory exclude respect_gitignore force_exclude target_named fail_level show_notes baseline unsafe_fixes "
    "cache_dir source".split()
)
# Environment variables of pyflakes, which implements TA910 and TA911.
_VARIABLES = ("PYFLAKES_BUILTINS", "PYFLAKES_DOCTEST", "PYFLAKES_ERROR_UNKNOWN")


class FileState(NamedTuple):
    """What is known of a file: its content, and what others see of it.

    `links` decides which files it imports (`Around.links`), and `surface` is what others see of it without its text
    (`engine.surface`), empty if no result depends on that.
    """

    digest: str
    stamp: Stamp | None
    links: str
    surface: str


class World(NamedTuple):
    """The state of the disk that all entries of a cache file hold for.

    It has every file, folder and list of importers that a look-up in the project went through, by name.
    """

    files: dict[str, FileState]
    folders: dict[str, dict[str, bool]]
    importers: dict[str, str]

    def agrees(self, other: "World") -> bool:
        """Whether both are of one state, as far as they are about the same."""
        files = self.files.keys() & other.files.keys()
        return (
            all(self.files[name].digest == other.files[name].digest for name in files)
            and all(
                self.folders[name] == other.folders[name]
                for name in self.folders.keys() & other.folders.keys()
            )
            and all(
                self.importers[name] == other.importers[name]
                for name in self.importers.keys() & other.importers.keys()
            )
        )

    def update(self, other: "World") -> None:
        """Add what the other knows; a surface that it does not know stays."""
        for name, state in other.files.items():
            known = self.files.get(name)
            if known is not None and known.digest == state.digest and not state.surface:
                state = state._replace(surface=known.surface)
            self.files[name] = state
        self.folders.update(other.folders)
        self.importers.update(other.importers)


class Context(NamedTuple):
    """What the findings of a file depend on besides its own text, by names in the project.

    Of the files in `read` the text counts, of those in `seen` the surface, of those in `importers` which files import them. Of
    each of the `folders` it counts whether it has these `names` (`trail.Name`): a module that is not there may appear.
    """

    read: list[str]
    seen: list[str]
    folders: list[str]
    names: list[str]
    importers: list[str]


class Learned(NamedTuple):
    """What the linting of a file shows besides its findings; `world` is what this process did not tell before."""

    context: Context
    world: World
    is_steady: bool
    """Whether no file was seen to change meanwhile."""
    outlines: dict[bytes, bytes]
    """What this process has learned of single files; see `Index.news`."""


class _CacheEntry(NamedTuple):
    """The cached result of a linted file; `day` is that of the last lookup."""

    day: int
    findings: list[Any]
    context: Context


class Cache:
    """The cache in a folder, for files named relative to a root. It never raises because of what is on disk.

    `problem` says why nothing can be written, and what helps; earlier entries can still be read if there is a key.

    Raises:
        UsageError: TA_CACHE_KEY is too short for a secret.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.problem = ""
        self._key = b""
        try:
            self._key = signing_key()
        except OSError as error:
            self.problem = f"{error.filename}: {error.strerror}; TA_CACHE_KEY may hold a key"
        spelled = Path(os.path.abspath(folder))  # noqa: PTH100 - `resolve` would follow links
        if spelled.is_relative_to(root) and not is_within(folder, root):
            self.problem = f"{folder} leads out of the project by a link; --cache-dir names another place"
        self._today = time.time_ns() // (86_400 * 10**9)
        self._books: dict[str, _Book] = {}
        self._book_of: dict[tuple[int, str], tuple[Config, _Book]] = {}
        self._shelves: dict[str, _Shelf] = {}
        self._written = time.monotonic()
        self._pause = _SECONDS_BETWEEN_WRITES

    def find(self, files: "list[File]") -> "tuple[list[tuple[File, list[Finding]]], list[File]]":
        """The files with known findings, in their current state and that of all that they depend on, and the others."""
        known: list[tuple[File, list[Finding]]] = []
        changed: list[File] = []
        current: set[int] = set()
        for file in files:
            book = self._book_for(file)
            if book is not None and id(book) not in current:
                book.bring_up_to_date(file)
                current.add(id(book))
            name = _named(file.absolute, file.root)
            entry = book.entries.get(name) if book is not None else None
            findings = _findings(entry, file) if entry is not None else None
            if book is None or entry is None or findings is None:
                changed.append(file)
                continue
            if entry.day != self._today:
                book.keep(name, entry._replace(day=self._today))
            known.append((file, project_of(file.root).judged(findings, file.absolute)))
        return known, changed

    def keep(self, file: "File", findings: "list[Finding]", learned: Learned) -> None:
        """Add what the linting of a file has shown; entries are written from time to time, and finally by `close`.

        The crash of a check is not kept: memory may have been short. Nor is why a file cannot be read.
        """
        book = self._book_for(file)
        if book is None:
            return
        self._shelf(file.root).add(learned.outlines)
        book.learn(learned)
        crashed = any(found.rule == "TA000" for found in findings)
        name = _named(file.absolute, file.root)
        state = book.world.files.get(name)
        if state is not None and state.digest and not crashed and _are_of(file, findings):
            book.keep(name, _CacheEntry(self._today, [*map(asdict, findings)], learned.context))
        if time.monotonic() - self._written > self._pause:
            self._write()

    def _book_for(self, file: "File") -> "_Book | None":
        """The book that has the findings of a file; None if they are not kept."""
        if not self._key or file.given is not None:
            return None
        return self._book(file.config, file.root)

    def outlines(self, root: str) -> dict[bytes, bytes]:
        """What earlier runs have learned of the files below a root, by name; see `Index`."""
        return self._shelf(root).read() if self._key else {}

    def close(self) -> None:
        """Write what is not yet written, and drop what has not been used for a long time."""
        for project in project_of.all() if self._key else ():
            self._shelf(project.layout.root).add(project.index.news())
        shelves = self._write_each([shelf for shelf in self._shelves.values() if shelf.is_fresh])
        if self._write() or shelves:
            with contextlib.suppress(OSError):
                names = {shelf.name for shelf in self._shelves.values()}
                _prune(self.folder, names.union(self._books))

    def _shelf(self, root: str) -> "_Shelf":
        if root not in self._shelves:
            where = "" if self.folder.is_relative_to(root) else root
            name = f"outlines-{digest_of(f'{where} {_linter_version()}'.encode(errors='surrogatepass'), self._key)}.txt"
            self._shelves[root] = _Shelf(self.folder / name, self._key, root)
        return self._shelves[root]

    def _book(self, config: "Config", root: str) -> "_Book":
        known = self._book_of.get((id(config), root))
        if known is None:
            name = f"findings-{digest_of(_decisive(config, Path(root), self.folder), self._key)}.json"
            if name not in self._books:
                self._books[name] = _Book(self.folder / name, self._key, Path(root))
            known = (config, self._books[name])  # holds the config, so that its id stays unique
            self._book_of[id(config), root] = known
        return known[1]

    def _write(self) -> bool:
        """Write every changed book; return whether any was written."""
        began = time.monotonic()
        changed = [book for book in self._books.values() if book.is_fresh]
        if not changed:
            return False
        done = self._write_each(changed)
        self._written = time.monotonic()
        self._pause = max(_SECONDS_BETWEEN_WRITES, 20 * (self._written - began))
        return done

    def _write_each(self, files: "Sequence[_Book | _Shelf]") -> bool:
        """Write some cache files; return whether any was written."""
        if not files or self.problem:
            return False
        try:
            _make(self.folder)
            for file in files:
                file.save(self._today)
        except OSError as error:
            what = error.strerror or type(error).__name__
            self.problem = f"{self.folder}: {what}; --cache-dir names another place"
        return not self.problem


class _Book:
    """The entries for one set of settings and one root, by file name relative to that, which all hold for one state of the disk.

    `is_fresh` says that something is not yet in the cache file.
    """

    def __init__(self, path: Path, key: bytes, root: Path) -> None:
        self._file = SignedFile(path, key)
        self._root = str(root)
        self._is_steady = True
        self.is_fresh = False
        self.world, self.entries = self._read()

    def keep(self, name: str, entry: _CacheEntry) -> None:
        self.entries[name] = entry
        self.is_fresh = True

    def learn(self, learned: Learned) -> None:
        """Add to the state of the disk what a process has seen of it, unless it changes meanwhile: then nothing is written."""
        self._is_steady = self._is_steady and learned.is_steady and self.world.agrees(learned.world)
        self.world.update(learned.world)

    def bring_up_to_date(self, file: "File") -> None:
        """Look at the disk, and drop the entries that what has changed there may change; `file` is one of these settings."""
        texts, folders = self._changed_texts(), self._changed_folders(file)
        if not (texts or folders):
            return
        self.is_fresh = True
        links, surfaces = self._changed_surfaces(texts, file)
        importers = self._changed_importers(file) if links or folders else set()
        for name, entry in list(self.entries.items()):
            read, seen, looked_into, names, asked = entry.context
            if (
                name in texts
                or not texts.isdisjoint(read)
                or not surfaces.isdisjoint(seen)
                or not importers.isdisjoint(asked)
                or any(not folders[folder].isdisjoint(names) for folder in folders.keys() & {*looked_into})
            ):
                del self.entries[name]

    def _changed_texts(self) -> set[str]:
        """The files whose content is not that of before."""
        changed: set[str] = set()
        for name, state in list(self.world.files.items()):
            path = _at(self._root, name)
            if state.stamp is not None and state.stamp == stamp_of(path):
                continue
            content = content_of(path)
            if content.digest != state.digest:
                changed.add(name)
            if (content.digest, content.stamp) != (state.digest, state.stamp):
                self.world.files[name] = state._replace(digest=content.digest, stamp=content.stamp)
                self.is_fresh = True
        return changed

    def _changed_folders(self, file: "File") -> dict[str, set[str]]:
        """The folders in which a look-up may find another module than before, or one more, with the names of these."""
        from ta_lint.project.layout import changed_names

        layout = project_of(file.root).layout
        changed: dict[str, set[str]] = {}
        for name, before in self.world.folders.items():
            after = layout.listed(_at(self._root, name))
            if after != before:
                self.world.folders[name] = after
                changed[name] = {_asked(one, name) for one in changed_names(before, after)}
        return changed

    def _changed_surfaces(self, texts: set[str], file: "File") -> tuple[bool, set[str]]:
        """Whether one of these files imports other files than before, and those of them of which others see something new."""
        if not texts:
            return False, set()
        from ta_lint.engine import surface

        around = project_of(file.root).around
        any_links, surfaces = False, set()
        for name in texts:
            path, state = _at(self._root, name), self.world.files[name]
            links = around.links(path)
            any_links = any_links or links != state.links
            new = surface(path, file) if state.surface else ""
            if new != state.surface:
                surfaces.add(name)
            self.world.files[name] = state._replace(links=links, surface=new)
        return any_links, surfaces

    def _changed_importers(self, file: "File") -> set[str]:
        """The files that other files import than before."""
        changed: set[str] = set()
        for name, before in self.world.importers.items():
            after = _importers(_at(self._root, name), file)
            if after != before:
                self.world.importers[name] = after
                changed.add(name)
        return changed

    def save(self, today: int) -> None:
        """Replace the cache file by one that also has what other processes have added meanwhile, if they saw the same disk.

        Raises:
            OSError: the file cannot be written; it is then unchanged.
        """
        if not self._is_steady:
            return
        world, entries = self._read()
        if self.world.agrees(world):
            world.update(self.world)
            self.world, self.entries = world, {**entries, **self.entries}
        kept = {name: entry for name, entry in self.entries.items() if entry.day >= today - _DAYS_KEPT}
        if len(kept) > _ENTRIES_KEPT:
            latest = sorted(kept, key=lambda name: kept[name].day, reverse=True)
            kept = {name: kept[name] for name in latest[:_ENTRIES_KEPT]}
        body = json.dumps([*self.world, kept], separators=(",", ":"), check_circular=False).encode()
        self._file.write(body)
        self.entries, self.is_fresh = kept, False

    def _read(self) -> tuple[World, dict[str, _CacheEntry]]:
        """What is in the cache file; nothing if it is not ours."""
        nothing = World({}, {}, {}), dict[str, _CacheEntry]()
        body = self._file.read()
        return (_parsed(body) if body is not None else None) or nothing


class _Shelf:
    """The outlines of the files below one root, as lines: a name, a tab, and what `Outline.encoded` gives."""

    def __init__(self, path: Path, key: bytes, root: str) -> None:
        self.name = path.name
        self._file = SignedFile(path, key)
        self._root = root
        self._added: dict[bytes, bytes] = {}

    @property
    def is_fresh(self) -> bool:
        """Whether something is not yet in the cache file."""
        return bool(self._added)

    def add(self, lines: dict[bytes, bytes]) -> None:
        self._added.update(lines)

    def read(self) -> dict[bytes, bytes]:
        """What is in the cache file; nothing if it is not ours."""
        parts = (line.partition(b"\t") for line in (self._file.read() or b"").split(b"\n"))
        return {name: outline for name, _, outline in parts if outline}

    def save(self, _: int) -> None:
        """Replace the cache file by one that also has what other processes have added, of files that are there.

        Raises:
            OSError: the file cannot be written; it is then unchanged.
        """
        lines = {name: line for name, line in self.read().items() if name not in self._added}
        lines = {name: line for name, line in lines.items() if stamp_of(_at(self._root, json.loads(name)))}
        lines.update(self._added)
        body = b"\n".join(b"%b\t%b" % item for item in lines.items())
        if len(body) > _BYTES_KEPT // 2:
            body = b"\n".join(b"%b\t%b" % item for item in self._added.items())
        if len(body) <= _BYTES_KEPT // 2:
            self._file.write(body)
        self._added = {}


def cache_folder(config: "Config", root: Path) -> Path:
    """The cache folder of a project: from the settings, otherwise a folder in the project itself."""
    return config.cache_dir.absolute() if config.cache_dir is not None else root / FOLDER


def lint(file: "File") -> "tuple[list[Finding], Learned]":
    """The findings of a file, and what they depend on."""
    from ta_lint.engine import dependencies, lint_file

    data, stamp = file.given, None
    if data is None:
        with contextlib.suppress(Unreadable):
            data, stamp = read_with_stamp(file.location)
    findings = lint_file(file._replace(given=data))
    project = project_of(file.root)
    if data is not None:
        project.around.note(file.absolute, Content(digest_of(data), stamp))
    found: dict[type, set[str]] = {kind: set() for kind in (Surface, WholeText, Name, Importers)}
    names: set[str] = set()
    for leaf in dependencies(file, data or b""):
        found[type(leaf)].add(_named(leaf[0], file.root))
        if isinstance(leaf, Name):
            names.add(_asked(leaf.name, _named(leaf.folder, file.root)))
    found[Surface] -= found[WholeText]
    context = Context(*map(sorted, (found[WholeText], found[Surface], found[Name], names, found[Importers])))
    news = _news(file, context)
    return findings, Learned(context, news, not project.around.changing, project.index.news())


def _asked(name: str, folder: str) -> str:
    """What is asked of a folder: of all that it has, nothing else has the answer."""
    return f"{ANY} {folder}" if name == ANY else name


def _news(file: "File", context: Context) -> World:
    """What this process has seen of the disk and not told before."""
    from ta_lint.engine import surface

    project = project_of(file.root)
    news = World({}, {}, {})
    for name in context.seen:
        if ("surface", name) not in project.told:
            project.told.add(("surface", name))
            path = _at(file.root, name)
            news.files[name] = _state(project, path, surface(path, file))
    for path in project.around.contents.keys() - project.told:
        project.told.add(path)
        news.files.setdefault(name_of(path, file.root), _state(project, path, ""))
    for folder, names in project.layout.known():
        if ("folder", folder) not in project.told:
            project.told.add(("folder", folder))
            news.folders[_named(folder, file.root)] = names
    for name in context.importers:
        if ("importers", name) not in project.told:
            project.told.add(("importers", name))
            news.importers[name] = _importers(_at(file.root, name), file)
    return news


def _state(project: "Project", path: str, surface: str) -> FileState:
    links = project.around.links(path)
    return FileState(*project.around.contents[path], links, surface)


def _importers(path: str, file: "File") -> str:
    """A digest of which files import one, and how large the package is that it is in."""
    project = project_of(file.root)
    naming, using, launching, in_library = project.around.imported_by(path)
    names = sorted((name, names is None, sorted(names or ())) for name, names in naming.items())
    told = repr((names, using, launching, in_library)).replace(file.root, "")
    return digest_of(told.encode("utf-8", "surrogatepass"))


def _at(root: str, name: str) -> str:
    """The path of what has a name, as `_named` gives it."""
    return os.path.join(root, name) if name else root  # noqa: PTH118 - for thousands of files


def _named(path: str, root: str) -> str:
    """The name of a file or folder, empty for the root itself, so that a project can move with its cache."""
    return name_of(path, root) if path != root else ""


def caches(top: Path) -> Iterator[Path]:
    """The cache folders with the usual name in a folder and below it; links are not followed."""
    for folder, below, _ in os.walk(top):
        if FOLDER in below and not (place := Path(folder, FOLDER)).is_symlink():
            yield place
        below[:] = sorted(name for name in below if name not in (FOLDER, ".git", "node_modules"))


def remove(folder: Path) -> tuple[int, int]:
    """Remove what ta-lint wrote into a cache folder, and the folder if then empty; return the number of files and bytes.

    Raises:
        OSError: a file cannot be removed.
    """
    removed = size = 0
    marks = [folder / name for name, text in _MARKS.items() if _holds(folder / name, text)]
    for path in [*_own(folder), *marks]:
        size += path.lstat().st_size
        path.unlink(missing_ok=True)
        removed += 1
    if removed:
        with contextlib.suppress(OSError):  # not empty: other files are not ours
            folder.rmdir()
    return removed, size


def _own(folder: Path) -> list[Path]:
    """The cache files that ta-lint has written into a folder, for any user and any settings."""
    try:
        with os.scandir(folder) as listing:
            return [
                Path(entry.path)
                for entry in listing
                if entry.is_file(follow_symlinks=False) and _is_own(entry)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_own(entry: "os.DirEntry[str]") -> bool:
    """Whether a file is ours by its name and first bytes; a killed process may leave an empty file."""
    left_over = _LEFT_OVER.fullmatch(entry.name) is not None
    if not left_over and _NAME.fullmatch(entry.name) is None:
        return False
    try:
        head = read(entry.path, len(MAGIC))
    except Unreadable:
        return False
    return head == MAGIC or (left_over and head == b"")


def _holds(path: Path, text: str) -> bool:
    try:
        return read(path) == text.encode()
    except Unreadable:
        return False


def _findings(entry: _CacheEntry, file: "File") -> "list[Finding] | None":
    """The findings of an entry; None if they are invalid or belong to another file."""
    from ta_lint.core.finding import Finding
    from ta_lint.core.plain import reader

    try:
        findings: list[Finding] = list(map(reader(Finding), entry.findings))
    except (ValueError, TypeError):
        return None
    rules = file.config.rules
    sound = all(found.rule in rules and all(map(_is_place, _places(found))) for found in findings)
    return findings if sound and _are_of(file, findings) else None


def _places(finding: "Finding") -> "list[Site]":
    return [finding.site, *(other.site for other in finding.related)]


def _is_place(site: "Site") -> bool:
    return min(site.line, site.column, site.end_line, site.end_column) >= 1


def _are_of(file: "File", findings: "list[Finding]") -> bool:
    return all(found.site.path == file.name for found in findings)


def _parsed(body: bytes) -> tuple[World, dict[str, _CacheEntry]] | None:
    """The content of a cache file; None if it does not have our format."""
    try:
        files, folders, importers, found = json.loads(body)
        world = World(
            {name: FileState(*state) for name, state in files.items()}, dict(folders), dict(importers)
        )
        entries = {
            name: _CacheEntry(day, findings, Context(*context))
            for name, (day, findings, context) in found.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return (world, entries) if all(isinstance(entry.day, int) for entry in entries.values()) else None


def _decisive(config: "Config", root: Path, folder: Path) -> bytes:
    """Everything that decides the findings of a file, other than its content.

    It excludes the path of the project if the cache lies in it, so that both can be moved.
    """
    settings: dict[str, object] = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in config._asdict().items()
        if name not in _NOT_DECISIVE
    }
    settings["directory"] = os.path.relpath(config.directory, root)
    settings["root"] = "" if folder.is_relative_to(root) else str(root)
    settings["environment"] = [os.environ.get(name) for name in _VARIABLES]
    return f"{settings!r} {_linter_version()}".encode("utf-8", "surrogatepass")


@cache
def _linter_version() -> str:
    """The versions of Python and the parsers, and a hash of ta-lint's own files.

    ta-lint's version does not distinguish states of a checkout, and file times are new in each CI job.
    """
    from ta_lint.core.catalogue import pages

    python = (sys.implementation.name, *sys.version_info)
    hashed = blake2b(digest_size=16)
    for name, page in pages().items():
        hashed.update(f"{name}\0".encode() + page)
    for folder, below, names in os.walk(str(Path(__file__).parent)):
        below[:] = sorted({*below} - {"__pycache__", "_rules"})
        for name in sorted(names):
            path = f"{folder}/{name}"
            with contextlib.suppress(OSError), open(path, "rb", buffering=0) as stream:  # noqa: PTH123
                hashed.update(f"{name}\0".encode() + stream.read())  # an editor's link may dangle
    return repr((__version__, hashed.hexdigest(), python, _release("libcst"), _release("pyflakes")))


def _release(package: str) -> list[str]:
    """The release of an installed package, from the name of its metadata folder; `importlib.metadata` is slow to load."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return []
    beside = Path(spec.origin).parents[1]
    described = sorted(entry.name for entry in beside.glob(f"{package}-*"))
    return described or [str(Path(spec.origin).stat().st_mtime_ns)]


def _make(folder: Path) -> None:
    """Create a cache folder that git and backups ignore. An existing one is used as it is.

    Raises:
        OSError: the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    for name, text in _MARKS.items():
        (folder / name).write_text(text, encoding="utf-8")


def _prune(folder: Path, in_use: set[str]) -> None:
    """Drop cache files that no run has written for a long time, and the oldest if the total size is too large."""
    oldest = time.time() - _DAYS_KEPT * 86_400
    total = 0
    found = [(path.stat(), path) for path in _own(folder)]
    for status, path in sorted(found, key=lambda item: item[0].st_mtime, reverse=True):
        total += status.st_size
        if path.name in in_use:
            continue
        left_over = path.name.startswith(".") and status.st_mtime < time.time() - 3600  # by a killed process
        if left_over or status.st_mtime < oldest or total > _BYTES_KEPT:
            path.unlink(missing_ok=True)
