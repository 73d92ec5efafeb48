"""The text of one Python file, with its lines, statements, comments, and Python's own tree and symbols.

It needs only the text, so that a run, which has a file and a line number, names a statement exactly as the linter does.
"""

import ast
import codecs
import contextlib
import io
import re
import symtable
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ta_lint.core.errors import Unreadable, oneline
from ta_lint.core.former import readable, restored
from ta_lint.core.lines import LINE_END

if TYPE_CHECKING:
    from ta_lint.core.notebook import Notebook
    from ta_lint.core.statements import Comment, Statement

T = TypeVar("T")

_OF_HOST_NAMES = ("idna", "punycode")  # they take minutes for a file, or cannot encode what they decoded
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff")

NOTEBOOK = ".ipynb"


@dataclass(frozen=True)
class Source:
    """One file: its `path` as findings name it, and its text with the line ends it has on disk.

    For a `notebook`, the text is that of its joined cells.
    """

    path: str
    text: str
    notebook: "Notebook | None" = None
    refusals: tuple[Unreadable, ...] = ()
    """What cannot be read of the file, though the rest can."""

    @cached_property
    def lines(self) -> list[str]:
        """The lines without line ends. Unlike in `str.splitlines`, a form feed does not end a line, as in Python."""
        if "\r" not in self.text:
            return self.text.split("\n")  # ten times as fast
        return LINE_END.split(self.text)

    @cached_property
    def line_ends(self) -> list[str]:
        """The line end of each line, empty for the last."""
        if "\r" not in self.text:
            return [*"\n" * self.text.count("\n"), ""]
        return [*LINE_END.findall(self.text), ""]

    @cached_property
    def newline(self) -> str:
        """The first line end of the file; a line feed if it has none."""
        return self.line_ends[0] or "\n"

    @cached_property
    def former(self) -> SyntaxError | None:
        """Python's error about a file that it could parse until Python 3.6."""
        text = readable(self.text)
        if text == self.text or isinstance(_compiled(lambda: ast.parse(text)), SyntaxError):
            return None
        tree = _compiled(lambda: ast.parse(self.text))
        return tree if isinstance(tree, SyntaxError) else None

    @cached_property
    def readable(self) -> str:
        """The text that Python parses: with a stand-in for what it could parse formerly."""
        return self.text if self.former is None else readable(self.text)

    @cached_property
    def syntax(self) -> ast.Module | SyntaxError:
        """Python's tree of the file, or the error if Python cannot parse it, and could not formerly.

        Raises:
            Unreadable: the file is too deep or too large for the parser.
        """
        tree = _compiled(lambda: ast.parse(self.readable))
        if self.readable is self.text or isinstance(tree, SyntaxError):
            return tree
        return restored(tree)

    @cached_property
    def symbols(self) -> symtable.SymbolTable | SyntaxError:
        """The names in every scope as Python's compiler sees them, or the error if it refuses the file.

        Costs half as much as `syntax`, as Python builds no tree objects.

        Raises:
            Unreadable: as for `syntax`.
        """
        return _compiled(lambda: symtable.symtable(self.readable, self.path, "exec"))

    @cached_property
    def is_compilable(self) -> bool:
        """Whether Python compiles the file. It refuses more than the two above, such as a `break` outside a loop.

        Raises:
            Unreadable: as for `syntax`.
        """
        compiled = _compiled(lambda: compile(self.text, self.path, "exec", dont_inherit=True))
        return not isinstance(compiled, SyntaxError)

    @cached_property
    def statements(self) -> "list[Statement]":
        return self._statements_and_comments[0]

    @cached_property
    def comments(self) -> "list[Comment]":
        return self._statements_and_comments[1]

    @cached_property
    def _statement_of_line(self) -> "dict[int, Statement]":
        found: dict[int, Statement] = {}
        for statement in self.statements:
            for line in range(statement.line, statement.end_line + 1):
                found.setdefault(line, statement)
        return found

    def statement_at(self, line: int) -> "Statement":
        """The statement that covers a line; for a line without one, the text of the line."""
        found = self._statement_of_line.get(line)
        if found is None:
            from ta_lint.core.statements import Statement, normalised

            text = self.lines[line - 1] if line <= len(self.lines) else ""
            found = Statement(line, line, normalised(text), "")
        return found

    @cached_property
    def _statements_and_comments(self) -> "tuple[list[Statement], list[Comment]]":
        from ta_lint.core.statements import statements_and_comments

        return statements_and_comments(self.lines)


def _compiled(compiler: Callable[[], T]) -> T | SyntaxError:
    try:
        with warnings.catch_warnings(action="ignore"):  # about the linted code, such as invalid escapes
            return compiler()
    except SyntaxError as error:
        return error
    except (RecursionError, MemoryError) as error:
        raise Unreadable("Python cannot parse this: it is nested too deep, or too large") from error
    except ValueError as error:
        raise Unreadable(f"Python cannot parse this: {oneline(error)}") from error


def source_of(name: str, data: bytes) -> Source:
    """The source of a file with this name and content.

    Raises:
        Unreadable: the bytes are not text at all, or not a notebook.
    """
    if name.endswith(NOTEBOOK):
        from ta_lint.core.notebook import read_notebook

        notebook = read_notebook(data)
        return Source(name, notebook.text, notebook, tuple(notebook.refusals))
    text, refusal = _decoded(data)
    return Source(name, text, None, (refusal,) if refusal is not None else ())


def bytes_of(source: Source, like: bytes) -> bytes:
    """The bytes of a file whose content was `like` and is now this source; what is not source stays as in `like`.

    Raises:
        ValueError: the encoding lacks a character, or the cells do not match the notebook any more.
    """
    if source.path.endswith(NOTEBOOK):
        from ta_lint.core.notebook import write_notebook

        return write_notebook(source.text, like)
    return encode(source.text, like)


def decode(data: bytes) -> str:
    """Decode a Python file by its byte-order mark or its declaration (PEP 263), otherwise as UTF-8.

    A byte that is no text in that encoding becomes the letter that it is in Latin-1: Python allows it in a comment.

    Raises:
        Unreadable: there is no such encoding, or the file contains a NUL byte, which Python refuses.
    """
    return _decoded(data)[0]


def _decoded(data: bytes) -> tuple[str, Unreadable | None]:
    """As `decode`, with the complaint about the first byte that is no text."""
    if data.startswith(_UTF_16_OR_32):
        raise Unreadable("the file is UTF-16 or UTF-32; Python reads UTF-8 unless declared otherwise")
    if (nul := data.find(b"\0")) >= 0:
        raise Unreadable("the file holds a NUL byte", *_position(data, nul))
    encoding = "utf-8"
    try:
        with contextlib.suppress(UnicodeDecodeError):
            encoding = _encoding(data)
            return data.decode(encoding), None
        return _as_far_as_possible(data, encoding)
    except (LookupError, UnicodeError) as error:  # also from codecs that are not for text
        raise Unreadable(f"the declared encoding does not read it: {oneline(error)}") from error
    except SyntaxError as error:  # an unknown encoding, or a first line that is not UTF-8
        text, refusal = _as_far_as_possible(data, "utf-8")
        if refusal is None:
            raise Unreadable(oneline(error)) from error
        return text, refusal


def _as_far_as_possible(data: bytes, encoding: str) -> tuple[str, Unreadable | None]:
    refusals: list[Unreadable] = []

    def as_latin(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        if not refusals:
            reason = f"byte 0x{data[error.start]:02x} is not {error.encoding}; save the file as UTF-8 or declare its encoding"
            refusals.append(Unreadable(reason, *_position(data, error.start)))
        return data[error.start : error.end].decode("latin-1"), error.end

    codecs.register_error("ta-lint", as_latin)
    return data.decode(encoding, "ta-lint"), refusals[0] if refusals else None


def encode(text: str, like: bytes) -> bytes:
    """Encode the text as in `like`, which `decode` has read, with the same byte-order mark.

    Raises:
        UnicodeError: the encoding lacks a character, or cannot encode at all.
    """
    try:
        return text.encode(_encoding(like))
    except SyntaxError as error:  # the first lines are not UTF-8
        raise UnicodeError(oneline(error)) from error


def _encoding(data: bytes) -> str:
    """The encoding that a file declares in its first two lines, otherwise UTF-8.

    Raises:
        SyntaxError: the encoding is unknown, or the lines declare none and are not UTF-8.
        LookupError: the encoding is not for text.
    """
    head = b"\n".join(re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2])
    encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    if codecs.lookup(encoding).name in _OF_HOST_NAMES:
        raise LookupError(f"{encoding} is for host names, not for text")
    return encoding


def _position(data: bytes, offset: int) -> tuple[int, int]:
    before = LINE_END.split(data[:offset].decode("latin-1"))
    return len(before), len(before[-1]) + 1
