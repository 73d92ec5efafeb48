"""Patterns of paths, as the lines of a `.gitignore`.

Most lines are names, and most others a name with a `*`: those are looked up here, as loading pathspec and compiling an
expression for each line takes longer than linting a file. It is asked where a line says more.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import groupby
from string import ascii_letters, digits

TYPE_CHECKING = False  # `typing` is not needed for more
if TYPE_CHECKING:
    from pathspec.pattern import Pattern

_LITERAL = frozenset(ascii_letters + digits + "/_.-$@%+=,~")
_GLOB = r"(?:[^][*?]|\*(?!\*)|\?|\[[A-Za-z0-9]+\])+"

_PLAIN, _NEGATED, _ODD = range(3)  # kinds of lines

_Says = tuple[bool, Callable[[str], bool]]  # whether it excludes what it matches, and what that is


class Patterns:
    """What some lines exclude, of which the last that matches counts.

    Raises:
        ValueError: a line is no pattern.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        runs: list[_Says] = []
        for kind, run in groupby((line for line in lines if line and not line.startswith("#")), _kind):
            if kind is _ODD:
                runs += _by_pathspec(run)
            else:
                runs.append((kind is _PLAIN, _Names(line.removeprefix("!") for line in run).have))
        self._latest_first = runs[::-1]

    def verdict(self, path: str) -> bool | None:
        """Whether a path is excluded, whatever becomes of the folders above it; None where no line matches it.

        The path is relative to where the patterns stand, with forward slashes; that of a folder ends in one.
        """
        for excludes, matches in self._latest_first:
            if matches(path):
                return excludes
        return None

    def exclude(self, path: str) -> bool:
        """Whether a path is excluded, by itself or with a folder above it, out of which no line brings it back."""
        end = path.find("/")
        while -1 < end < len(path) - 1:
            if self.verdict(path[: end + 1]):
                return True
            end = path.find("/", end + 1)
        return bool(self.verdict(path))


class _Names:
    """Lines that mean the same to everybody.

    Names match at any depth; a line with a slash before its end is a path from where the patterns stand.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._folder_names: set[str] = set()
        self._paths: set[str] = set()
        self._folder_paths: set[str] = set()
        globs = []
        for line in lines:
            folder = line.endswith("/")
            path = line.rstrip("/")
            anchored = "/" in path and not path.startswith("**/")
            path = path.removeprefix("**/").removeprefix("/")
            if not _LITERAL.issuperset(path) or ("/" in path and not anchored):
                globs.append(f"{'' if anchored else '(?:.*/)?'}{_expression(path)}{'/' if folder else '/?'}")
            elif anchored:
                (self._folder_paths if folder else self._paths).add(path)
            else:
                (self._folder_names if folder else self._names).add(path)
        self._globs = re.compile("|".join(globs), re.DOTALL) if globs else None

    def have(self, path: str) -> bool:
        is_folder = path.endswith("/")
        bare = path[:-1] if is_folder else path
        name = bare[bare.rfind("/") + 1 :]
        return (
            name in self._names
            or bare in self._paths
            or (is_folder and (name in self._folder_names or bare in self._folder_paths))
            or (self._globs is not None and self._globs.fullmatch(path) is not None)
        )


@cache
def patterns(lines: tuple[str, ...]) -> Patterns:
    """The patterns of these lines, made once."""
    return Patterns(lines)


def is_pattern(line: str) -> bool:
    """Whether it is a line that `.gitignore` may hold."""
    try:
        Patterns([line])
    except ValueError:
        return False
    return True


def _kind(line: str) -> int:
    """Whether a line is looked up, as it is or against others, or left to pathspec."""
    if _is_plain(line):
        return _PLAIN
    return _NEGATED if line.startswith("!") and _is_plain(line[1:]) else _ODD


def _is_plain(line: str) -> bool:
    """Whether it means the same to everybody: it negates nothing, and escapes nothing."""
    path = line.removesuffix("/").removeprefix("**/").removeprefix("/")
    if not path or path.startswith("/") or path.endswith("/") or "//" in path:
        return False
    if _LITERAL.issuperset(path):
        return True
    return _LITERAL.issuperset(re.sub(r"[][*?]", "", path)) and re.fullmatch(_GLOB, path) is not None


def _expression(path: str) -> str:
    """The regular expression of a path with wildcards, none of which matches a slash."""
    marks = {"*": "[^/]*", "?": "[^/]"}
    parts = (
        "[^/]+" if part.strip("*") == "" else
        "".join(
            mark if mark.startswith("[") else marks.get(mark, re.escape(mark))
            for mark in re.findall(r"\[.+?\]|.", part)
        )
        for part in path.split("/")
    )  # fmt: skip
    return "/".join(parts)


def _by_pathspec(lines: Iterable[str]) -> Iterator[_Says]:
    from pathspec import GitIgnoreSpec

    try:
        for pattern in GitIgnoreSpec.from_lines(lines).patterns:
            if pattern.include is not None:
                yield pattern.include, partial(_matches_itself, pattern)
    except re.error as error:
        raise ValueError(str(error)) from error


def _matches_itself(pattern: "Pattern", path: str) -> bool:
    """Whether a pattern of pathspec, which also matches all that is in a folder, matches the path and no folder above."""
    found = pattern.match_file(path)
    if found is None:
        return False
    slash: int | None = found.match.lastindex  # its only group is the slash after a folder that it means
    end: int = found.match.end(slash or 0)
    return end == len(path) if slash else end < len(path) or not path.endswith("/")  # `a/**` is not `a/`
