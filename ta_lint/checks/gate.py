r"""The gate: what the text of a file must hold before a check looks at it.

Of all that a run does to a file this is done most often. So no question is asked twice, and an expression is searched for
only where the words are that it cannot match without: `\bretain_graph\s*=\s*True` in a file that has the name
`retain_graph` and, perhaps in a name, `True`. The names of a file are found once.
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Union

# Names as a whole: `\bAdam\b`, `\b(?:Adam|AdamW)\b`, `\bAdam\b|\bAdamW\b`.
_NAMES = re.compile(r"\\b\(\?:\w+(?:\|\w+)*\)\\b|\\b\w+\\b(?:\|\\b\w+\\b)*")
_MARKS = re.compile(r"\\b|\(\?:|\)|\|")

# Without a character that means something in a regular expression: `zero_grad`, `torch\.save\(`.
_LITERAL = re.compile(r"(?:[\w ]|\\[.()])+")

# The parts of an expression: a character, plain or escaped, several to choose from, how often.
_TOKENS = re.compile(r"\\.|\{[\d,]+\}|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_TIED = re.compile(
    r"\\\d|\(\?(?:\w|\()"
)  # a back reference, or flags for the whole: its parts mean nothing alone
_MISSABLE = "?*{"  # after a part that need not be there
_LED = re.compile(r"\A\\b(\w{3,})(?![\w?*+{])")
_AFTER_NAMES = frozenset([r"\b", r"\s", "^", "$", *" =,:;#\"'!<>@%/-"])  # as is what is escaped and no letter

# Each byte as it is in a name, and a space for all others.
_SPACED = bytes(
    code if (chr(code).isalnum() and code < 128) or code == ord("_") else 32 for code in range(256)
)

_COMMENT = re.compile(rb"\n[ \t]*+#[^\n]*+")
_REMARK = re.compile(
    rb"#[^\n'\"]*+$", re.MULTILINE
)  # behind code; with a quote in it, it may be part of a string
_CONTINUED = re.compile(rb"^([^#\r\n]*+)(?<=\\)\r?\n", re.MULTILINE)  # behind a comment, no line goes on
_FED = re.compile(rb"^[ \t\f]*\f", re.MULTILINE)  # which begins the line anew
_EMPTY = re.compile(rb"\(\s++\)")
_BLOCK = re.compile(
    rb"^([ \t]*+)(?:async )?(?:case|class|def|elif|else|except|finally|for|if|try|while|with)\b[^\n]*+(?<![:,(\[{\n])$",
    re.MULTILINE,
)
_PART = re.compile(rb"'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"|[(\[{]|[)\]}]|\blambda\b|:(?!=)")
_SEVERAL = re.compile(rb"^([ \t]*+)([^'\"#;\n]*+;[^'\"#\n]*+)$", re.MULTILINE)
_MARK = b'"""'  # of nearly every docstring


def code(data: bytes) -> bytes:
    """The bytes of a file but for what nobody runs, a quarter of most: docstrings and comments.

    Where it is not certain what is a docstring or a comment, they stay. Layout that many expressions would have to ask for is
    the usual one: lines that a backslash joins are one, nothing stands between empty parentheses, form feeds go, and each
    statement begins on a line of its own, between two line ends.
    """
    kept = _REMARK.sub(b"", _COMMENT.sub(b"", b"\n" + _without_docstrings(data)))
    if b"\\\n" in kept or b"\\\r\n" in kept:
        kept = _CONTINUED.sub(_joined, kept)
    if b"\f" in kept:
        kept = _FED.sub(b"", kept).replace(b"\f", b" ")
    kept = _BLOCK.sub(_opened, _EMPTY.sub(b"()", kept))
    kept = _SEVERAL.sub(_apart, kept) if b";" in kept else kept
    return kept if kept.endswith(b"\n") else kept + b"\n"


def _joined(line: re.Match[bytes]) -> bytes:
    return line[1][:-1] + b" "


def _opened(line: re.Match[bytes]) -> bytes:
    """`if x: y` over two lines."""
    opened: list[bytes] = []
    for part in _PART.finditer(line[0]):
        if part[0] in (b"(", b"[", b"{", b"lambda"):
            opened.append(part[0])
        elif part[0] in (b")", b"]", b"}"):
            del opened[-1:]
        elif part[0] == b":" and opened:
            del opened[len(opened) - (opened[-1] == b"lambda") :]
        elif part[0] == b":":
            rest = line[0][part.end() :].strip()
            return line[0][: part.end()] + b"\n" + line[1] + b"    " + rest if rest else line[0]
    return line[0]


def _apart(line: re.Match[bytes]) -> bytes:
    """`a; b` over two lines."""
    return b"\n".join(line[1] + part.strip() for part in line[2].split(b";"))


def _without_docstrings(data: bytes) -> bytes:
    parts = data.split(_MARK)
    if len(parts) % 2 == 0 or b"'''" in data:
        return data
    for number in range(0, len(parts) - 1, 2):  # every other part is code, if each mark is one
        before, text = parts[number : number + 2]
        line = before.rfind(b"\n") + 1
        head = before[line:]
        if b"#" in head or b"'" in head or b'"' in head or text.endswith(b"\\"):
            return data
        if not head.strip(b" \trR") and before[:line].rstrip().endswith(b":"):
            parts[number + 1] = b""
    return _MARK.join(parts)


def says(expression: str, text: str) -> bool:
    """Whether the code of a file holds what an expression of `NEEDS` matches, for checks that ask for it themselves."""
    return (
        re.search(expression.encode(), code(text.encode("utf-8", "surrogatepass")), re.MULTILINE) is not None
    )


class Text:
    """The code of a file, and what has been asked of it."""

    def __init__(self, data: bytes) -> None:
        self.data = code(data)
        self.answers: dict[str, bool] = {}
        self._has: dict[bytes, bool] = {}

    @cached_property
    def names(self) -> frozenset[bytes]:
        """All that `\\b\\w+\\b` finds."""
        return frozenset(self.data.translate(_SPACED).split())

    @cached_property
    def lower(self) -> bytes:
        return self.data.lower()

    @cached_property
    def words(self) -> bytes:
        """The names, each once, one after another: a sixth of the file, and a word is in both or in neither."""
        return b" ".join(self.names)

    def has(self, word: bytes) -> bool:
        """Whether a word stands anywhere in the file, if only in a name."""
        found = self._has.get(word)
        if found is None:
            found = self._has[word] = word in self.words
        return found


Need = Callable[[Text], bool]
Needs = tuple[Union[str, Need, "Needs"], ...]


def need(wanted: str | Need | Needs) -> Need:
    """The test of one entry of `NEEDS`: an expression, a test, or a tuple, of which any one has to hold."""
    if isinstance(wanted, str):
        return _expression(wanted)
    if not isinstance(wanted, tuple):
        return wanted
    return _any_of_entries(wanted)


def _any_of_entries(wanted: Needs) -> Need:
    """Of the tuples that begin with names, only those are asked whose name the file has: a table has hundreds."""
    by_name: dict[bytes, list[Need]] = {}
    others: list[Need] = []
    for entry in wanted:
        if not isinstance(entry, tuple):
            others.append(need(entry))
        elif isinstance(entry[0], str) and (names := _names(entry[0])):
            rest = _every(entry[1:])
            for name in names:
                by_name.setdefault(name, []).append(rest)
        else:
            others.append(_every(entry))
    if not by_name:
        return _any(others)
    keys = frozenset(by_name)

    def holds(text: Text) -> bool:
        return any(rest(text) for name in keys & text.names for rest in by_name[name]) or any(
            other(text) for other in others
        )

    return holds


def _names(pattern: str) -> frozenset[bytes]:
    """The names that an expression is made of, if it is nothing but whole names."""
    if not _NAMES.fullmatch(pattern):
        return frozenset()
    return frozenset(name.encode() for name in _MARKS.split(pattern) if name)


def _any(tests: list[Need]) -> Need:
    def holds(text: Text) -> bool:
        for test in tests:  # noqa: SIM110 - a generator costs more than most tests
            if test(text):
                return True
        return False

    return holds if len(tests) > 1 else tests[0]


def _every(wanted: Needs) -> Need:
    tests = [need(entry) for entry in wanted]

    def holds(text: Text) -> bool:
        for test in tests:  # noqa: SIM110
            if not test(text):
                return False
        return True

    return holds


@cache
def _expression(pattern: str) -> Need:
    if names := _names(pattern):
        return lambda text: not names.isdisjoint(text.names)

    def holds(text: Text) -> bool:
        answer = text.answers.get(pattern)
        if answer is None:
            answer = text.answers[pattern] = _question(pattern)(text)
        return answer

    return holds


@cache
def _question(pattern: str) -> Need:
    return _any([_alternative(part) for part in _alternatives(pattern)])


def _alternatives(pattern: str) -> list[str]:
    """The parts of an expression that can be looked for one by one, as a `|` in no parentheses divides them."""
    if _TIED.search(pattern):
        return [pattern]
    found = [""]
    depth = 0
    for token in _TOKENS.findall(pattern):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == "|":
            found.append("")
        else:
            found[-1] += token
    wordless = [part for part in found if not _certain(part).strip(" \0")]
    return [part for part in found if part not in wordless] + (["|".join(wordless)] if wordless else [])


def _alternative(pattern: str) -> Need:
    certain = _certain(pattern)
    names = frozenset(name.encode() for name in re.findall(r"(?<= )\w+(?= )", certain))
    words = [word.encode() for word in re.findall(r"\w{3,}", certain) if word.encode() not in names]
    # a search for letters goes twenty times as fast as one for a place where a name begins
    found = _found(_LED.sub(r"\1(?<!\\w\1)", pattern) if certain else pattern)

    def holds(text: Text) -> bool:
        if not names <= text.names:
            return False
        for word in words:
            if not text.has(word):
                return False
        return found(text)

    return holds


def _found(pattern: str) -> Need:
    if _LITERAL.fullmatch(pattern):
        literal = re.sub(r"\\(.)", r"\1", pattern).encode()
        return lambda text: literal in text.data
    if pattern.startswith("(?i)") and pattern == pattern.lower():  # four times as fast without the flag
        lowered = _compiled(pattern.removeprefix("(?i)"))
        return lambda text: lowered().search(text.lower) is not None
    expression = _compiled(pattern)
    return lambda text: expression().search(text.data) is not None


def _compiled(pattern: str) -> Callable[[], re.Pattern[bytes]]:
    """The expression, compiled when first asked for."""
    return cache(lambda: re.compile(pattern.encode(), re.MULTILINE))


def _certain(pattern: str) -> str:
    r"""The letters that whatever matches must hold, with a space where a name ends, and `\0` where it may go on."""
    found = ""
    depth = 0
    if "(?i)" in pattern:
        return ""
    tokens = _TOKENS.findall(pattern)
    for token, following in zip(tokens, [*tokens[1:], " "], strict=True):
        depth -= token == ")"
        if depth == 0 and token == "|":
            return ""
        if depth > 0 or following[0] in _MISSABLE:
            found += "\0"
        elif token.isalnum() or token == "_":
            found += token
        elif token in _AFTER_NAMES or (token[0] == "\\" and not token[1].isalnum()):
            found += " "
        elif token != "+" or not found.endswith(" "):
            found += "\0"
        depth += token == "("
    return found
