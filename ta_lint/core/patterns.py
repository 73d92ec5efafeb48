"""Patterns of paths, as the lines of a `.gitignore`.

Most lines are names, and most others a name with a `*`: those are looked up here, as loading pathspec and compiling an
expression for each line takes longer than linting a file. It is asked where a line says more.
"""

import re
from collections.abc import Iterable
from functools import cache
from string import ascii_letters, digits

TYPE_CHECKING = False  # `typing` is not needed for more
if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LITERAL = frozenset(ascii_letters + digits + "/_.-$@%+=,~")
_GLOB = r"(?:[^][*?]|\*(?!\*)|\?|\[[A-Za-z0-9]+\])+"


class Patterns:
    """What some lines exclude, of which the last that matches counts.

    Raises:
        ValueError: a line is no pattern.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._spec: GitIgnoreSpec | None = None
        lines = [line for line in lines if line and not line.startswith("#")]
        if all(map(_is_simple, lines)):
            self._look_up(lines)
        else:
            self._spec = _spec(lines)

    def verdict(self, path: str) -> bool | None:
        """Whether a path is excluded, by itself or with a folder above it; None where no line says anything of it.

        The path is relative to where the patterns stand, with forward slashes; that of a folder ends in one.
        """
        if self._spec is not None:
            return self._spec.check_file(path).include
        parts = path.split("/")
        if (
            not self._names.isdisjoint(parts)
            or not self._folder_names.isdisjoint(parts[:-1])
            or f"{path}/".startswith(self._paths)
            or path.startswith(self._folder_paths)
            or (self._globs is not None and self._globs.search(path) is not None)
        ):
            return True
        return None

    def _look_up(self, lines: list[str]) -> None:
        """Names match at any depth; a line with a slash before its end is a path from where the patterns stand."""
        names: set[str] = set()
        folder_names: set[str] = set()
        paths: set[str] = set()
        folder_paths: set[str] = set()
        globs = []
        for line in lines:
            path = line.rstrip("/")
            anchored = "/" in path and not path.startswith("**/")
            path = path.removeprefix("**/").removeprefix("/")
            if not _LITERAL.issuperset(path) or ("/" in path and not anchored):
                start = "^" if anchored else "(?:^|/)"
                end = "/" if line.endswith("/") else r"(?:/|\Z)"
                globs.append(f"{start}{_expression(path)}{end}")
            elif anchored:
                (folder_paths if line.endswith("/") else paths).add(f"{path}/")
            else:
                (folder_names if line.endswith("/") else names).add(path)
        self._names, self._folder_names = frozenset(names), frozenset(folder_names)
        self._paths, self._folder_paths = tuple(paths), tuple(folder_paths)
        self._globs = re.compile("|".join(globs)) if globs else None


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


def _is_simple(line: str) -> bool:
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


def _spec(lines: list[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except re.error as error:
        raise ValueError(str(error)) from error
