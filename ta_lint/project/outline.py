"""What a file shows of itself: what it imports and binds, and the answers to what was asked about its text.

All of it depends on the bytes of that one file alone, so that it holds for as long as these do, in memory and on disk.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from ta_lint.core.digest import digest_of
from ta_lint.core.libraries import is_ours
from ta_lint.core.reading import Stamp

ALL = "*"
Statement = list[Any]
"""The package of an import statement, and a list of what it takes from there: `Net`, `Net as Model`, `*`; nothing for `import package`,
and `* as name` for `import package as name`."""

# A line feed first, as `re` searches fastest for a letter: of a file, `lines` is searched.
_IMPORT = re.compile(
    rb"\n[ \t]*+(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]{0,4000}\)|[^\n]*)|import[ \t]+([^\n#;]+))"
)
_AT_THE_TOP = re.compile(rb"\n(?=[^\s#)])(?:(?:(?:async[ ]+)?def|class)[ ]+(\w+)|(\w+)[ \t]*[:=])")
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"(\w+)(?:[ \t]+as[ \t]+(\w+))?")
_OTHERS = frozenset("flax jax keras mindspore mxnet paddle tensorflow tinygrad warp".split())


class Outline:
    """What was learned of a file with some content.

    `digest` and `stamp` are those of its content, and `answers` what was found out about its text, by question; they hold
    plain lists, dicts and values, as JSON keeps them.
    """

    __slots__ = ("__dict__", "answers", "digest", "is_ours", "stamp", "statements", "tops")

    def __init__(
        self,
        digest: str,
        stamp: Stamp | None,
        is_ours: bool,
        statements: list[Statement],
        tops: str,
        answers: dict[str, Any],
    ) -> None:
        self.digest = digest
        self.stamp = stamp
        self.is_ours = is_ours
        """Whether it is about PyTorch."""
        self.statements = statements
        self.tops = tops
        """The names that it binds at its top, separated by spaces."""
        self.answers = answers

    @cached_property
    def links(self) -> str:
        """A digest of what decides which files it imports, and what it hands on."""
        seen = self.is_ours, self.statements, self.tops
        return digest_of(repr(seen).encode("utf-8", "surrogatepass"))

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that it binds at its top, other than by an import."""
        return frozenset(self.tops.split())

    @cached_property
    def is_of_another(self) -> bool:
        """Whether it imports another framework."""
        return is_of_another(self.statements)

    @cached_property
    def meanings(self) -> dict[str, Any]:
        """What answers mean, once somebody has asked: sets, and objects of classes."""
        return {}

    def encoded(self) -> bytes:
        """One line of text, from which `decoded` makes it again."""
        import json

        parts = self.digest, self.stamp, self.is_ours, self.statements, self.tops, self.answers
        return json.dumps(parts, separators=(",", ":"), check_circular=False).encode()


def decoded(line: bytes) -> Outline | None:
    """The outline that a line was made of; None if it is none."""
    import json  # only where there is a cache

    try:
        return Outline(*json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None


def outline_of(text: bytes, digest: str, stamp: Stamp | None) -> Outline:
    """The outline of a file with this text, as `core.letters.searchable` gives it."""
    found = lines(text)
    tops = {first or second for first, second in _AT_THE_TOP.findall(found)}
    return Outline(digest, stamp, is_ours(text), [*statements(found)], b" ".join(sorted(tops)).decode(), {})


def statements(data: bytes) -> Iterator[Statement]:
    """The import statements of a file with these lines."""
    for package, taken, modules in _IMPORT.findall(data):
        if package:
            yield [package.decode(), _taken(taken)]
        else:
            for item in modules.decode("utf-8", "replace").split(","):
                module, _, bound = item.partition(" as ")
                yield [module.strip(), [f"{ALL} as {bound.strip()}"] if bound else []]


def is_of_another(written: Iterable[Statement]) -> bool:
    """Whether a file with these import statements is about another framework."""
    return any(package.partition(".")[0] in _OTHERS for package, _ in written)


def _taken(written: bytes) -> list[str]:
    """What a statement takes, as it is written after `import`; all of it if that is not told."""
    if b"#" in written:
        written = _COMMENT.sub(b"", written)
    if b" as " not in written:
        return [name.decode() for name, _ in _NAME.findall(written)] or [ALL]
    found = _NAME.findall(written)
    return [f"{name.decode()} as {bound.decode()}" if bound else name.decode() for name, bound in found]


def lines(data: bytes) -> bytes:
    """The bytes of a file with a line feed before each line, the first included."""
    return b"\n" + data
