"""The cache: the findings of files that have not changed since.

A folder with one cache file per set of settings; it holds a digest of the content and the findings of each linted file.
Cache files are replaced and never edited, so no lock is needed: a reader sees the old one or the new one, a killed
process leaves the old one, and if two processes write at once, some files may be linted again.

Each cache file is named and signed with a key that only this user has, as a cloned repository may contain a forged one.
"""

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache, lru_cache
from hashlib import blake2b
from hmac import compare_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ta_lint import __version__
from ta_lint.core.files import is_within
from ta_lint.file import name_of
from ta_lint.project.project import project_of

if TYPE_CHECKING:
    from ta_lint.core.config import Config
    from ta_lint.core.finding import Finding, Site
    from ta_lint.file import File

FOLDER = ".ta_cache"

_DAYS_KEPT = 30  # since the last lookup of a file
_BYTES_KEPT = 64 << 20  # per cache folder; 4,000 linted files take 1 MB
_ENTRIES_KEPT = 100_000  # per set of settings
_SECONDS_BETWEEN_WRITES = 2.0

_LEAST_KEY = 32  # characters of TA_CACHE_KEY: the cache lets an attacker test guesses

# How much older than the time of reading a file must be for its timestamp to show the next change: FAT counts in 2 s.
_SETTLED_NS = 2_000_000_000

_MAGIC = b"ta-lint cache "
_HEAD = _MAGIC + b"3 "
_NAME = re.compile(r"findings-[0-9a-f]{32}\.json")
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

_Stamp = list[int]


class FileContent(NamedTuple):
    """A digest of a file's content and the `stat` that shows, without reading the file, that it is unchanged.

    The stamp is None if the file was written just before: it would not show a change in the same tick of the clock.
    """

    digest: str
    stamp: _Stamp | None


class Context(NamedTuple):
    """What else the findings of a file depend on, by the names of other files of the project.

    Of the files in `read` the text counts, of those in `seen` only the surface (`engine.surface`). `state` is a digest of the
    text of all, `outline` one of the text of the former and of the surfaces of the latter. A new importer of a file in `asked` may
    change the findings. `surface` is that of the file itself; empty if it is not known.
    """

    read: list[str]
    seen: list[str]
    state: str
    outline: str
    asked: list[str]
    surface: str


class _CacheEntry(NamedTuple):
    """The cached result of a linted file; `day` is that of the last lookup."""

    digest: str
    stamp: _Stamp | None
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
            self._key = _signing_key()
        except OSError as error:
            self.problem = f"{error.filename}: {error.strerror}; TA_CACHE_KEY may hold a key"
        spelled = Path(os.path.abspath(folder))  # noqa: PTH100 - `resolve` would follow links
        if spelled.is_relative_to(root) and not is_within(folder, root):
            self.problem = f"{folder} leads out of the project by a link; --cache-dir names another place"
        self._root = root
        self._today = time.time_ns() // (86_400 * 10**9)
        self._books: dict[str, _Book] = {}
        self._book_of: dict[int, tuple[Config, _Book]] = {}
        self._written = time.monotonic()
        self._pause = _SECONDS_BETWEEN_WRITES
        self._digests: dict[str, str] = {}  # of the files of this run, by name
        self._surfaces: dict[str, str] = {}

    def find(self, files: "list[File]") -> "tuple[list[tuple[File, list[Finding]]], list[File]]":
        """The files with known findings, in their current state and that of the files they depend on, and the others."""
        self._digests.clear()
        self._surfaces.clear()
        current = {file.name: (file, entry) for file in files if (entry := self._current(file)) is not None}
        self._digests.update({name: entry.digest for name, (_, entry) in current.items()})
        self._surfaces.update({name: entry.context.surface for name, (_, entry) in current.items()})
        changed = [file for file in files if file.name not in current]
        importers = self._importers_among(changed) if current and changed else {}
        known = []
        for file, entry in current.values():
            findings = _findings(entry, file) if self._stands(entry, file, importers) else None
            if findings is None:
                changed.append(file)
            else:
                known.append((file, project_of(file.root).judged(findings, file.absolute)))
        return known, changed

    def _importers_among(self, changed: "list[File]") -> dict[str, set[str]]:
        """The changed files that may import other files than before, by the name of each that they import."""
        from ta_lint.engine import affected

        found: dict[str, set[str]] = {}
        for file in changed:
            known = self._book(file.config).entries.get(file.name)
            if known is None or known.context.surface != self._surface(file.name, file):
                for path in affected(file):
                    found.setdefault(name_of(path, file.root), set()).add(file.name)
        return found

    def _stands(self, entry: _CacheEntry, file: "File", importers: dict[str, set[str]]) -> bool:
        """Whether what an entry depends on is unchanged, and nothing new imports the files whose importers matter."""
        read, seen, state, outline, asked, _ = entry.context
        if any(importers.get(name, set()).difference(read, seen) for name in asked):
            return False
        if not (read or seen):
            return True
        texts = [self._digest_of(name, file) for name in read]
        if state == _joined(texts + [self._digest_of(name, file) for name in seen]):
            return True
        return outline == _joined(texts + [self._surface(name, file) for name in seen])

    def _digest_of(self, name: str, file: "File") -> str:
        """The digest of a file beside another."""
        if name not in self._digests:
            self._digests[name] = _digest_on_disk(os.path.join(file.root, name))  # noqa: PTH118
        return self._digests[name]

    def _surface(self, name: str, file: "File") -> str:
        """The surface of a file beside another; see `engine.surface`."""
        if not self._surfaces.get(name):
            from ta_lint.engine import surface

            self._surfaces[name] = surface(os.path.join(file.root, name), file)  # noqa: PTH118
        return self._surfaces[name]

    def _current(self, file: "File") -> _CacheEntry | None:
        """The entry of a file if its own content is unchanged."""
        if not self._key or file.given is not None:
            return None
        book = self._book(file.config)
        entry = book.entries.get(file.name)
        if entry is None:
            return None
        try:
            stamp: _Stamp | None = _stamp(os.stat(file.location))  # noqa: PTH116 - for thousands of files
        except OSError:
            return None
        if entry.stamp != stamp:
            content = _read(file)[1]
            if content is None or content.digest != entry.digest:
                return None
            stamp = content.stamp
        if (entry.stamp, entry.day) != (stamp, self._today):
            entry = book.keep(file.name, entry._replace(stamp=stamp, day=self._today))
        return entry

    def keep(
        self, file: "File", findings: "list[Finding]", content: FileContent | None, context: Context
    ) -> None:
        """Add the findings for this content of a file; entries are written from time to time, and finally by `close`.

        The crash of a check is not kept: memory may have been short.
        """
        crashed = any(found.rule == "TA000" for found in findings)
        if content is None or crashed or not self._key or not _are_of(file, findings):
            return
        entry = _CacheEntry(content.digest, content.stamp, self._today, [*map(asdict, findings)], context)
        self._book(file.config).keep(file.name, entry)
        if time.monotonic() - self._written > self._pause:
            self._write()

    def close(self) -> None:
        """Write what is not yet written, and drop what has not been used for a long time."""
        if self._write():
            with contextlib.suppress(OSError):
                _prune(self.folder, set(self._books))

    def _book(self, config: "Config") -> "_Book":
        known = self._book_of.get(id(config))
        if known is None:
            name = f"findings-{_digest(_decisive(config, self._root, self.folder), self._key)}.json"
            if name not in self._books:
                self._books[name] = _Book(self.folder / name, self._key)
            known = (config, self._books[name])  # holds the config, so that its id stays unique
            self._book_of[id(config)] = known
        return known[1]

    def _write(self) -> bool:
        """Write every changed book; return whether any was written."""
        began = time.monotonic()
        changed = [book for book in self._books.values() if book.fresh]
        if not changed or self.problem:
            return False
        try:
            _make(self.folder)
            for book in changed:
                book.save(self._today)
        except OSError as error:
            what = error.strerror or type(error).__name__
            self.problem = f"{self.folder}: {what}; --cache-dir names another place"
        self._written = time.monotonic()
        self._pause = max(_SECONDS_BETWEEN_WRITES, 20 * (self._written - began))
        return not self.problem


class _Book:
    """The entries for one set of settings, by file name; `fresh` are those not yet in the cache file."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self._key = key
        self.fresh: dict[str, _CacheEntry] = {}
        self._seen: _Stamp | None = None
        self.entries: dict[str, _CacheEntry] = {}
        self._read()

    def keep(self, name: str, entry: _CacheEntry) -> _CacheEntry:
        self.entries[name] = self.fresh[name] = entry
        return entry

    def save(self, today: int) -> None:
        """Replace the cache file by one with the fresh entries and those that other processes have added meanwhile.

        Raises:
            OSError: the file cannot be written; it is then unchanged.
        """
        self._read()
        kept = {name: entry for name, entry in self.entries.items() if entry.day >= today - _DAYS_KEPT}
        if len(kept) > _ENTRIES_KEPT:
            latest = sorted(kept, key=lambda name: kept[name].day, reverse=True)
            kept = {name: kept[name] for name in latest[:_ENTRIES_KEPT]}
        body = json.dumps(kept, separators=(",", ":"), check_circular=False).encode()
        _replace(self.path, self._head(body) + b"\n" + body)
        self.entries, self.fresh = kept, {}
        self._seen = _stamp(self.path.stat())

    def _read(self) -> None:
        """Read the cache file unless it is unchanged since the last read; the fresh entries stay."""
        try:
            status = self.path.stat()
            if (
                _stamp(status) == self._seen
                or not stat.S_ISREG(status.st_mode)
                or status.st_size > _BYTES_KEPT
            ):
                return
            head, _, body = self.path.read_bytes().partition(b"\n")
        except OSError:
            return
        self._seen = _stamp(status)
        if compare_digest(head, self._head(body)):
            self.entries = {**_parsed(body), **self.fresh}

    def _head(self, body: bytes) -> bytes:
        """The first line of the cache file; it also signs the name, so that a file for other settings does not pass."""
        return _HEAD + _digest(self.path.name.encode() + b"\n" + body, self._key).encode()


def cache_folder(config: "Config", root: Path) -> Path:
    """The cache folder of a project: from the settings, otherwise a folder in the project itself."""
    return config.cache_dir.absolute() if config.cache_dir is not None else root / FOLDER


def lint(file: "File") -> "tuple[list[Finding], FileContent | None, Context]":
    """The findings of a file, its content, and what else they depend on; None for a content that cannot be cached."""
    from ta_lint.engine import dependencies, lint_file, surface

    data, content = _read(file)
    findings = lint_file(file._replace(given=data))
    read, seen, asked = map(sorted, dependencies(file, data or b""))
    texts = [_digest_on_disk(path) for path in read]
    state = _joined(texts + [_digest_on_disk(path) for path in seen])
    outline = _joined(texts + [surface(path, file) for path in seen])
    names = [[name_of(path, file.root) for path in paths] for paths in (read, seen, asked)]
    own = surface(file.absolute, file) if read or seen else ""
    return findings, content, Context(names[0], names[1], state, outline, names[2], own)


def _joined(digests: list[str]) -> str:
    return _digest(" ".join(digests).encode())


def _digest_on_disk(path: str) -> str:
    """The digest of a file's content; empty if it cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ""
    return _digest_of(path, (status.st_size, status.st_mtime_ns, status.st_ino))


@lru_cache(4096)
def _digest_of(path: str, _: tuple[int, int, int]) -> str:
    """The digest of a file, read once for each of its states."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            return _digest(stream.read())
    except OSError:
        return ""


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
        with open(entry.path, "rb") as stream:  # noqa: PTH123
            head = stream.read(len(_MAGIC))
    except OSError:
        return False
    return head == _MAGIC or (left_over and head == b"")


def _holds(path: Path, text: str) -> bool:
    try:
        return path.is_file() and path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _read(file: "File") -> tuple[bytes | None, FileContent | None]:
    """The bytes of a file and its content on disk; None for what cannot be read or is not on disk."""
    if file.given is not None:
        return file.given, None
    now = time.time_ns()
    try:
        status = os.stat(file.location)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode):
            return None, None
        with open(file.location, "rb") as stream:  # noqa: PTH123
            data = stream.read()
    except OSError:
        return None, None
    settled = max(status.st_mtime_ns, status.st_ctime_ns) < now - _SETTLED_NS
    return data, FileContent(_digest(data), _stamp(status) if settled else None)


def _stamp(status: os.stat_result) -> _Stamp:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _digest(data: bytes, key: bytes = b"") -> str:
    """A digest of data; with a key, a signature."""
    return blake2b(data, digest_size=16, key=key).hexdigest()


def _signing_key() -> bytes:
    """The key of this user, or the one in TA_CACHE_KEY, which a CI keeps as a secret for its jobs.

    Raises:
        OSError: there is no place to keep a key.
        UsageError: TA_CACHE_KEY is too short for a secret.
    """
    given = os.environ.get("TA_CACHE_KEY")
    if not given:
        from ta_lint.core.keys import user_key

        return user_key("cache.key")
    if len(given) < _LEAST_KEY:
        from ta_lint.core.errors import UsageError

        raise UsageError(
            f"TA_CACHE_KEY: has fewer than {_LEAST_KEY} characters; make one with `openssl rand -hex 32`"
        )
    return blake2b(os.fsencode(given), digest_size=32).digest()


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


def _parsed(body: bytes) -> dict[str, _CacheEntry]:
    """The entries of a cache file; empty if they do not have our format."""
    try:
        entries = {
            name: _CacheEntry(digest, stamp, day, findings, Context(*context))
            for name, (digest, stamp, day, findings, context) in json.loads(body).items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return entries if all(isinstance(entry.day, int) for entry in entries.values()) else {}


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


def _replace(path: Path, data: bytes) -> None:
    """Replace a file without fsync: after a power cut, a damaged file does not match its digest."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


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
