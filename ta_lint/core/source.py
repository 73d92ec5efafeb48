"""The text of one Python file, and what is read off it: lines, statements, comments, and Python's own tree and symbols.

Works on text alone, so that a run, which has only a file and a line number, names a statement exactly as the
linter does.
"""

import ast
import codecs
import io
import os
import re
import stat
import symtable
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ta_lint.core.errors import Unreadable, oneline
from ta_lint.core.lines import LINE_END

if TYPE_CHECKING:
    from ta_lint.core.notebook import Notebook
    from ta_lint.core.statements import Comment, Statement

T = TypeVar("T")

_OF_HOST_NAMES = ("idna", "punycode")  # which take minutes for a file, or cannot write what they have read
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff")

NOTEBOOK = ".ipynb"


@dataclass(frozen=True)
class Source:
    """One file: `path` as a finding names it, and its text with the line ends it has on disk.

    Of a `notebook` the text is that of its cells, joined.
    """

    path: str
    text: str
    notebook: "Notebook | None" = None

    @cached_property
    def lines(self) -> list[str]:
        """Without line ends. Unlike `str.splitlines`, a form feed is not a line end, as for Python."""
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
        """The line end that the file begins with; a line feed where it has none."""
        return self.line_ends[0] or "\n"

    @cached_property
    def syntax(self) -> ast.Module | SyntaxError:
        """What Python's own parser makes of the file: its tree, or why it refuses.

        Raises:
            Unreadable: it is too deep or too large for the parser.
        """
        return _compiled(lambda: ast.parse(self.text))

    @cached_property
    def symbols(self) -> symtable.SymbolTable | SyntaxError:
        """The names of every scope as Python's own compiler sees them, or why it refuses the file.

        Costs half as much as `syntax`: no tree is handed over.

        Raises:
            Unreadable: as for `syntax`.
        """
        return _compiled(lambda: symtable.symtable(self.text, self.path, "exec"))

    @cached_property
    def is_compilable(self) -> bool:
        """Whether Python compiles it, which refuses more than the two above: a `break` outside a loop.

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
        """The statement that covers a line; for a line without one, its own text."""
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
        with warnings.catch_warnings(action="ignore"):  # of the linted code, such as an invalid escape
            return compiler()
    except SyntaxError as error:
        return error
    except (RecursionError, MemoryError) as error:
        raise Unreadable("Python cannot parse this: it is nested too deep, or too large") from error
    except ValueError as error:
        raise Unreadable(f"Python cannot parse this: {oneline(error)}") from error


def read(path: str | Path) -> bytes:
    """The bytes of a file.

    Raises:
        Unreadable: it cannot be opened, with the operating system's own reason, or is no file (reading a pipe
            would wait for ever).
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable("the folder cannot be listed" if stat.S_ISDIR(mode) else "not a regular file")
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise Unreadable(f"cannot read the file: {error.strerror or oneline(error)}") from error
    except MemoryError as error:
        raise Unreadable("cannot read the file: it does not fit into memory") from error


def source_of(name: str, data: bytes) -> Source:
    """The source of a file of this name that holds these bytes.

    Raises:
        Unreadable: it is not text, or not a notebook.
    """
    if name.endswith(NOTEBOOK):
        from ta_lint.core.notebook import read_notebook

        notebook = read_notebook(data)
        return Source(name, notebook.text, notebook)
    return Source(name, decode(data))


def bytes_of(source: Source, like: bytes) -> bytes:
    """The bytes of a file that held `like` and holds this source now; what is not source stays as it is there.

    Raises:
        ValueError: its encoding lacks a character, or its cells are not those of the notebook any more.
    """
    if source.path.endswith(NOTEBOOK):
        from ta_lint.core.notebook import write_notebook

        return write_notebook(source.text, like)
    return encode(source.text, like)


def decode(data: bytes) -> str:
    """The text of a Python file, by its byte-order mark or its declaration (PEP 263), UTF-8 otherwise.

    Raises:
        Unreadable: it is not text in that encoding, or holds a NUL byte, which Python refuses.
    """
    if data.startswith(_UTF_16_OR_32):
        raise Unreadable("the file is UTF-16 or UTF-32; Python reads UTF-8 unless declared otherwise")
    if (nul := data.find(b"\0")) >= 0:
        raise Unreadable("the file holds a NUL byte", *_position(data, nul))
    try:
        encoding = _encoding(data)
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = data[error.start]
        reason = f"byte 0x{byte:02x} is not {error.encoding}; save the file as UTF-8 or declare its encoding"
        raise Unreadable(reason, *_position(data, error.start)) from error
    except (LookupError, UnicodeError) as error:  # a codec that is not for text, or refuses in its own way
        raise Unreadable(f"the declared encoding does not read it: {oneline(error)}") from error
    except SyntaxError as error:  # detect_encoding: an unknown declaration, or a first line that is not UTF-8
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as undecodable:
            byte = data[undecodable.start]
            reason = f"byte 0x{byte:02x} is not utf-8; save the file as UTF-8 or declare its encoding"
            raise Unreadable(reason, *_position(data, undecodable.start)) from error
        raise Unreadable(oneline(error)) from error


def encode(text: str, like: bytes) -> bytes:
    """The text in the encoding of bytes that `decode` has read, with their byte-order mark.

    Raises:
        UnicodeError: it holds a character that the encoding lacks, or the encoding cannot be written at all.
    """
    return text.encode(_encoding(like))


def _encoding(data: bytes) -> str:
    """The encoding that a file declares in its first two lines, or UTF-8.

    Raises:
        SyntaxError: there is none of that name, or these lines are not UTF-8 and declare none.
        LookupError: it is not for text.
    """
    head = b"\n".join(re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2])
    encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    if codecs.lookup(encoding).name in _OF_HOST_NAMES:
        raise LookupError(f"{encoding} is for host names, not for text")
    return encoding


def _position(data: bytes, offset: int) -> tuple[int, int]:
    before = LINE_END.split(data[:offset].decode("latin-1"))
    return len(before), len(before[-1]) + 1
