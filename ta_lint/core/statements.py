"""The statements and comments of a text, as Python's tokenizer sees them.

The tokenizer is written in Python and slower than the parser. A faster scan of strings, comments, brackets and line ends
gives the same result; only where one of these is unusual does the tokenizer run.
"""

import io
import re
import tokenize
from typing import NamedTuple


class Statement(NamedTuple):
    """A logical line: a simple statement, or the header of a compound one. Lines count from 1, both included."""

    line: int
    end_line: int
    text: str
    """Normalised: no comments, no layout, one kind of quote."""
    scope: str
    """The enclosing qualified name, empty at module level."""


class Comment(NamedTuple):
    line: int
    column: int
    text: str
    alone: bool
    """Whether nothing else stands on its line."""


Found = tuple[list[Statement], list[Comment]]

# Anything that may decide where a statement ends, with the text before it. Brackets without any such thing inside are
# skipped in one step. Groups are repeated as `(?>(?:...)*)`: before 3.11.5, Python reads `(?:...)*+` wrong
# (https://github.com/python/cpython/issues/106052).
_MARK = re.compile(
    r"""
    [^\n()\[\]{}'"\#\\$?!]*+ (?:
      (?P<end>\n)
    | \([^()\[\]{}'"\#\\\n$?!]*+\) | \[[^()\[\]{}'"\#\\\n$?!]*+\]
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<string>
        '''[^'\\]*+(?>(?:(?:\\.|'(?!''))[^'\\]*+)*)''' | '(?!'')[^'\\\n]*+(?>(?:\\.[^'\\\n]*+)*)'
      | \"""[^"\\]*+(?>(?:(?:\\.|"(?!""))[^"\\]*+)*)\""" | "(?!"")[^"\\\n]*+(?>(?:\\.[^"\\\n]*+)*)"
      )
    | (?P<comment>\#[^\n]*+)
    | \\\n | !=
    | (?P<unfit>['"\\$?!])
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_LAYOUT = re.compile(r"(?>(?:[ \t\f]*+(?:#[^\n]*+)?\n)*)(?P<indentation>[ \t\f]*+)")
_COMMENT = re.compile(r"#[^\n]*+")
_DEFINITION = re.compile(r"(?:async(?>(?:[ \t\f]|\\\n)+))?(?:def|class)(?>(?:[ \t\f]|\\\n)+)(\w++)")


def statements_and_comments(lines: list[str]) -> Found:
    """The statements and comments of a text, given as lines without line ends; of broken code, those before the error."""
    text = "\n".join(lines)
    return _scanned(f"{text}\n") or _tokenized(text, lines)


def normalised(text: str) -> str:
    """The text without blanks, quote styles and magic trailing commas, so that no formatter changes it."""
    text = "".join(text.split()).replace("'", '"')
    return re.sub(r",(?=[)\]}])", "", text)


def _scanned(text: str) -> Found | None:
    """The statements and comments of a text that ends with a line end; None if anything in it is unusual."""
    statements: list[Statement] = []
    comments: list[Comment] = []
    scopes: list[tuple[int, str]] = []  # indentation and name of each enclosing class and function
    indents = [0]
    start, line = 0, 1
    while start < len(text):
        layout = _LAYOUT.match(text, start)
        assert layout is not None
        begin = layout.end()
        if "#" in layout[0]:
            comments += _comments(
                text, [mark.span() for mark in _COMMENT.finditer(text, start, begin)], start, line
            )
        line += text.count("\n", start, begin)
        if begin == len(text):
            break
        end, within = _end(text, begin)
        code = _without(text[begin:end], [(first - begin, last - begin) for first, last in within])
        code = code.rstrip(" \t\f\n")
        if not end or code[0] == "\\" or code[-1] == "\\" or not _fits(layout["indentation"], indents):
            return None
        comments += _comments(text, within, begin, line)
        end_line = line + text.count("\n", begin, end)
        depth = len(indents) - 1
        while scopes and scopes[-1][0] >= depth:
            scopes.pop()
        scope = ".".join(name for _, name in scopes)
        statements.append(Statement(line, end_line, normalised(code), scope))
        definition = _DEFINITION.match(text, begin)
        if definition is not None:
            scopes.append((depth, definition[1]))
        start, line = end + 1, end_line + 1
    return statements, comments


def _end(text: str, begin: int) -> tuple[int, list[tuple[int, int]]]:
    """The end of a statement's last line, 0 if uncertain, and the spans of the comments in it."""
    comments: list[tuple[int, int]] = []
    depth = 0
    for mark in _MARK.finditer(text, begin):
        kind = mark.lastgroup
        if kind is None:
            continue
        if kind == "end":
            if not depth:
                return mark.end() - 1, comments
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "comment":
            comments.append(mark.span("comment"))
        if depth < 0 or kind == "unfit" or (kind == "string" and not _is_whole(text, *mark.span("string"))):
            break
    return 0, comments


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a string ends where it seems to: since Python 3.12 an f-string may contain its own quotes in braces."""
    prefix = text[max(start - 2, 0) : start].lower()
    return "f" not in prefix or text.count("{", start, end) == text.count("}", start, end)


def _fits(indentation: str, indents: list[int]) -> bool:
    """Whether an indentation opens a block or returns to an open one; updates the stack of open indentations."""
    width = 0
    for blank in indentation:
        width = 0 if blank == "\f" else width + 1 if blank == " " else (width // 8 + 1) * 8
    if width > indents[-1]:
        indents.append(width)
    while width < indents[-1]:
        indents.pop()
    return width == indents[-1]


def _comments(text: str, spans: list[tuple[int, int]], start: int, line: int) -> list[Comment]:
    """The comments at these offsets; the offset `start` is on line `line`."""
    comments = []
    for first, last in spans:
        line += text.count("\n", start, first)
        start = first
        before = text[text.rfind("\n", 0, first) + 1 : first]
        comments.append(Comment(line, len(before) + 1, text[first:last], not before.strip()))
    return comments


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    parts = []
    done = 0
    for first, last in spans:
        parts.append(text[done:first])
        done = last
    return "".join([*parts, text[done:]])


def _tokenized(text: str, lines: list[str]) -> Found:
    statements: list[Statement] = []
    comments: list[Comment] = []
    scopes: list[tuple[int, str]] = []
    depth = 0
    logical: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                alone = not token.line[:column].strip()
                comments.append(Comment(line, column + 1, token.string, alone))
            elif token.type == tokenize.INDENT:
                depth += 1
            elif token.type == tokenize.DEDENT:
                depth -= 1
            elif token.type == tokenize.NEWLINE:
                if logical:
                    while scopes and scopes[-1][0] >= depth:
                        scopes.pop()
                    scope = ".".join(name for _, name in scopes)
                    first, last = logical[0].start, logical[-1].end
                    code = normalised(_between(first, last, lines, comments))
                    statements.append(Statement(first[0], last[0], code, scope))
                    if (name := _defined_name(logical)) is not None:
                        scopes.append((depth, name))
                logical = []
            elif token.type not in (tokenize.NL, tokenize.ENDMARKER):
                logical.append(token)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # newer syntax than this Python's tokenizer knows: keep what it has read so far
    return statements, comments


def _between(first: tuple[int, int], last: tuple[int, int], lines: list[str], comments: list[Comment]) -> str:
    """The text between two positions, cut from the lines, as tokens differ between Python versions."""
    cut = {comment.line: comment.column - 1 for comment in comments[-(last[0] - first[0] + 1) :]}
    parts = []
    for number in range(first[0], last[0] + 1):
        end = last[1] if number == last[0] else cut.get(number)
        parts.append(lines[number - 1][first[1] if number == first[0] else 0 : end])
    return "\n".join(parts)


def _defined_name(tokens: list[tokenize.TokenInfo]) -> str | None:
    words = [token.string for token in tokens[:3]]
    if words[:1] == ["async"]:
        words = words[1:]
    return words[1] if len(words) > 1 and words[0] in ("def", "class") else None
