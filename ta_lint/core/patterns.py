"""Path patterns as in the lines of a `.gitignore`.

Most lines are names, which are looked up in a set. The others become regular expressions that run in time linear in the
length of a path, whatever the line: an untrusted repository may have written it. As in Python's `fnmatch`, a `*` becomes a
lazy match in an atomic group: the first match of what follows leaves the most for the rest, so backtracking can never
help. The same holds for `**` and the folders that follow it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby

_SPECIAL = re.compile(r"[\\*?[]")
_TOKEN = re.compile(
    r"""\\(?P<escaped>.)
    | (?P<bracket>\[[!^]?+\]?+(?>(?:\[:[^]:[]*+:\]|\\.|[^]\\])*)\])
    | (?P<stars>\*+)
    | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE,
)
_MEMBER = re.compile(r"\[:(?P<name>[^]:[]*+):\]|\\(?P<escaped>.)|(?P<char>.)", re.DOTALL)
_CLASSES = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "xdigit": "09AFaf",
}
"""The character ranges of a class such as `[:alnum:]`, as pairs of first and last."""

_STAR = ""  # stands for a `*` in a segment; other items are expressions of one character


class Patterns:
    """A list of pattern lines; the last one that matches decides.

    Raises:
        ValueError: a line is not a valid pattern; git also ignores it.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        runs = [
            (not negated, _Run(line[negated:] for line in run))
            for negated, run in groupby(filter(None, map(_meant, lines)), lambda line: line.startswith("!"))
        ]
        self._latest_first = runs[::-1]

    def verdict(self, path: str) -> bool | None:
        """Whether the path itself is excluded, regardless of the folders above it; None if no line matches.

        The path is relative to the folder of the patterns, with forward slashes; the path of a folder ends in one.
        """
        for excludes, run in self._latest_first:
            if run.matches(path):
                return excludes
        return None

    def exclude(self, path: str) -> bool:
        """Whether a path is excluded, itself or with a folder above it; no line can re-include from an excluded folder."""
        end = path.find("/")
        while -1 < end < len(path) - 1:
            if self.verdict(path[: end + 1]):
                return True
            end = path.find("/", end + 1)
        return bool(self.verdict(path))


class _Run:
    """Consecutive lines of one kind, whose order does not matter.

    Names match at any depth; a line with a slash before its end is a path from the folder of the patterns.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._paths: set[str] = set()
        self._folder_names: set[str] = set()
        self._folder_paths: set[str] = set()
        globs_of_names: list[str] = []
        globs_of_paths: list[str] = []
        for line in lines:
            folder = line.endswith("/")
            path = line[:-1] if folder else line
            anchored = "/" in path
            path = path.removeprefix("/")
            if path.startswith("**/") and "/" not in path[3:]:
                anchored, path = False, path[3:]
            if not path or path.endswith("/") or "//" in path or path.startswith("/"):
                raise ValueError(f"{line!r} has a folder without a name")
            if _SPECIAL.search(path) is not None:
                globs = globs_of_paths if anchored else globs_of_names
                globs.append(f"{_expression(path)}{'/' if folder else '/?'}")
            elif anchored:
                (self._folder_paths if folder else self._paths).add(path)
            else:
                (self._folder_names if folder else self._names).add(path)
        self._globs_of_names = re.compile("|".join(globs_of_names), re.DOTALL) if globs_of_names else None
        self._globs_of_paths = re.compile("|".join(globs_of_paths), re.DOTALL) if globs_of_paths else None

    def matches(self, path: str) -> bool:
        is_folder = path.endswith("/")
        bare = path[:-1] if is_folder else path
        name = bare[bare.rfind("/") + 1 :]
        return (
            name in self._names
            or bare in self._paths
            or (is_folder and (name in self._folder_names or bare in self._folder_paths))
            or (
                self._globs_of_names is not None
                and self._globs_of_names.fullmatch(f"{name}/" if is_folder else name) is not None
            )
            or (self._globs_of_paths is not None and self._globs_of_paths.fullmatch(path) is not None)
        )


@cache
def patterns(lines: tuple[str, ...]) -> Patterns:
    """The patterns of these lines, cached."""
    return Patterns(lines)


def is_pattern(line: str) -> bool:
    """Whether a line is valid in a `.gitignore`."""
    try:
        Patterns([line])
    except ValueError:
        return False
    return True


def _meant(line: str) -> str:
    """The line without trailing spaces, keeping one after a backslash; empty for a comment."""
    if line.startswith("#"):
        return ""
    bare = line.rstrip(" ")
    if bare == line:
        return line
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if backslashes % 2 else bare


def _expression(path: str) -> str:
    """The regular expression of a path with wildcards; each run of folders between two `**` is a group of its own.

    Raises:
        ValueError: the path has an unclosed bracket, an unknown class or an empty folder name, or ends in a
            backslash.
    """
    runs: list[list[str]] = [[]]
    for segment in _segments(path):
        if segment == []:
            raise ValueError(f"{path!r} has a folder without a name")
        if segment is None:
            runs.append([])
        else:
            runs[-1].append(_of_segment(segment))
    first, *between = ["/".join(run) for run in runs]
    if not between:
        return first
    *between, last = between
    return "".join(
        (
            f"{first}/" if first else "",
            *(f"(?>(?:[^/]++/)*?{run}/)" for run in between if run),
            f"(?:[^/]++/)*{last}" if last else ".+",
        )
    )


def _segments(path: str) -> Iterator[list[str] | None]:
    """The segments of a path, each a list of single-character expressions and stars; None for `**`."""
    segment: list[str] = []
    stars = ""
    for token in _TOKEN.finditer(path):
        char = token["escaped"] or token["other"]
        if char == "/":
            yield None if segment == [_STAR] and len(stars) > 1 else segment
            segment = []
        elif token["stars"]:
            segment.append(_STAR)
            stars = token["stars"]
        elif token["bracket"]:
            segment.append(_of_bracket(token["bracket"]))
        elif token["other"] in ("[", "\\"):
            raise ValueError(
                f"{path!r} has {'an open bracket' if char == '[' else 'nothing to escape at its end'}"
            )
        else:
            segment.append("[^/]" if token["other"] == "?" else re.escape(char))
    yield None if segment == [_STAR] and len(stars) > 1 else segment


def _of_segment(segment: list[str]) -> str:
    """The regular expression of a segment; no part of it matches a slash."""
    if segment == [_STAR]:
        return "[^/]+"
    pieces = ["".join(piece) for star, piece in groupby(segment, lambda char: char == _STAR) if not star]
    if _STAR not in segment:
        return pieces[0]
    first = pieces.pop(0) if segment[0] != _STAR else ""
    last = pieces.pop() if segment[-1] != _STAR else ""
    return "".join((first, *(f"(?>[^/]*?{piece})" for piece in pieces), f"[^/]*{last}"))


def _of_bracket(bracket: str) -> str:
    """The regular expression of a bracket such as `[!a-c[:digit:]]`; it never matches a slash.

    Raises:
        ValueError: it contains an unknown class.
    """
    inner = bracket[1:-1]
    negated = inner.startswith(("!", "^"))
    members = list(_MEMBER.finditer(inner, int(negated)))
    ranges: list[tuple[str, str]] = []
    start = ""  # of a range if a `-` follows
    position = 0
    while position < len(members):
        member = members[position]
        char = member["escaped"] or member["char"]
        if member["name"] is not None:
            bounds = _CLASSES.get(member["name"])
            if bounds is None:
                raise ValueError(f"{bracket!r} has no class of characters {member['name']!r}")
            ranges += zip(bounds[::2], bounds[1::2], strict=True)
            start = ""
        elif member["char"] == "-" and start and position + 1 < len(members):
            position += 1
            end = members[position]["escaped"] or members[position]["char"] or "["
            if start <= end:
                ranges.append((start, end))
            start = ""
        else:
            ranges.append((char, char))
            start = char
        position += 1
    within = "".join(
        f"{re.escape(low)}-{re.escape(high)}" if low < high else re.escape(low) for low, high in ranges
    )
    if negated:
        return f"[^/{within}]"
    return f"(?!/)[{within}]" if any(low <= "/" <= high for low, high in ranges) else f"[{within}]"
