"""Jupyter notebooks: joins their code cells into one Python source, and writes a fixed source back.

The cells are joined so that names from one are known in the next. Lines that only IPython understands become Python that
does nothing, with the original in a comment. Writing back changes only the lines that differ; every other byte of the
file stays.
"""

import ast
import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from typing import Any

from ta_lint.core.errors import Unreadable, refused
from ta_lint.core.finding import Cell, Finding, Site, TextEdit
from ta_lint.core.ipython import as_python, leaves_no_names, parsed, refusal
from ta_lint.core.lines import LINE_END, NEXT_CELL

_BOM = "\ufeff"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # lists of lines in notebooks end them with line feeds only

# Kernels of other languages, for notebooks that name only their kernel.
_OTHER_KERNELS = re.compile(r"(ir|julia|scala|spylon)\b", re.IGNORECASE)
_PYTHON = ("python", "ipython", "python3", "pyspark")

_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]', re.DOTALL)
_ESCAPED_LINE = re.compile(r"(?:[^\\]|\\[^n])*?(?:\\n|$)", re.DOTALL)

_Span = tuple[int, int]


@dataclass(frozen=True)
class _CodeCell:
    """A code cell: its number among all cells, from 1, its source, and its first line in the joined source."""

    number: int
    text: str
    line: int


@dataclass(frozen=True)
class Notebook:
    """The code cells of a notebook, joined: `text` is Python, and `separator` the comment between two cells."""

    file_text: str
    cells: tuple[_CodeCell, ...]
    text: str
    separator: str
    mark: str
    """Begins the comment that holds a line only IPython understands."""
    has_unread: bool = False
    """Whether a skipped cell may define names for the others."""
    refusals: tuple[Unreadable, ...] = ()
    """The cells that Python cannot parse: their lines in the joined source, where they are comments, and the reasons."""

    def lines_of(self, number: int) -> list[str]:
        """The lines of a cell as the notebook has them."""
        return next((LINE_END.split(cell.text) for cell in self.cells if cell.number == number), [])

    def is_refused(self, line: int) -> bool:
        """Whether a line of the joined source belongs to a cell that Python cannot parse."""
        return any(self._cell_at(refusal.line) is self._cell_at(line) for refusal in self.refusals)

    def located(self, finding: Finding) -> Finding:
        """Convert a finding from the joined source to its cell."""
        fix = finding.fix
        if fix is not None:
            fix = replace(fix, edits=tuple(map(self._edit_in_cell, fix.edits)))
        related = tuple(replace(other, site=self._site_in_cell(other.site)) for other in finding.related)
        held_by = tuple(replace(one, site=self._site_in_cell(one.site)) for one in finding.held_by)
        site = self._site_in_cell(finding.site)
        return replace(finding, site=site, related=related, fix=fix, held_by=held_by)

    def _site_in_cell(self, site: Site) -> Site:
        cell = self._cell_at(site.line)
        start = cell.line - 1
        where = Cell(cell.number, self._file_line(cell, site.line - start))
        return replace(
            site,
            line=site.line - start,
            column=self._column(site.line, site.column),
            end_line=site.end_line - start,
            end_column=self._column(site.end_line, site.end_column),
            cell=where,
        )

    def _edit_in_cell(self, edit: TextEdit) -> TextEdit:
        cell = self._cell_at(edit.line)
        start = cell.line - 1
        return replace(
            edit,
            line=edit.line - start,
            column=self._column(edit.line, edit.column),
            end_line=edit.end_line - start,
            end_column=self._column(edit.end_line, edit.end_column),
            cell=cell.number,
        )

    def _column(self, line: int, column: int) -> int:
        """Convert a column from the joined source to the cell, where lines for IPython do not begin with our comment."""
        return _unmarked(column, self._lines[line - 1 : line], self.mark)

    @cached_property
    def _lines(self) -> list[str]:
        return LINE_END.split(self.text)

    def _cell_at(self, line: int) -> _CodeCell:
        """The cell of a line in the joined source; for the line between two cells, where an edit appends, the first."""
        return next((cell for cell in reversed(self.cells) if cell.line <= line), self.cells[0])

    def _file_line(self, cell: _CodeCell, line: int) -> int:
        """The line in the notebook's JSON file that holds a line of a cell."""
        pieces = self._pieces.get(cell.number, [])
        if not pieces:
            return 1
        ends = self._line_ends[cell.number]
        (start, _), _ = pieces[min(bisect_left(ends, line), len(pieces) - 1)]
        return self._file_lines[start]

    @cached_property
    def _line_ends(self) -> dict[int, list[int]]:
        """For each code cell, by number: how many lines end in each of its `_pieces` and those before."""
        return {
            number: list(accumulate(len(LINE_END.findall(text)) for _, text in pieces))
            for number, pieces in self._pieces.items()
        }

    @cached_property
    def _file_lines(self) -> dict[int, int]:
        """The line in the file of each of `_pieces`, by its start."""
        found: dict[int, int] = {}
        line, done = 1, 0
        for start in sorted(start for pieces in self._pieces.values() for (start, _), _ in pieces):
            line += self.file_text.count("\n", done, start)
            found[start] = line
            done = start
        return found

    @cached_property
    def _pieces(self) -> dict[int, list[tuple[_Span, str]]]:
        """For each code cell, by number: the spans and texts of the JSON strings that hold its source.

        A source in a single string is split into its lines.
        """
        found: dict[int, list[tuple[_Span, str]]] = {}
        for number, (start, end), listed in _source_strings(self.file_text):
            if listed:
                found.setdefault(number, []).append(((start, end), json.loads(self.file_text[start:end])))
                continue
            for match in _ESCAPED_LINE.finditer(self.file_text, start + 1, end - 1):
                if match[0]:
                    found.setdefault(number, []).append((match.span(), json.loads(f'"{match[0]}"')))
        return found

    def rewritten(self, text: str) -> str:
        """The notebook's JSON file with a new joined source.

        Raises:
            ValueError: the cells of the source do not match the notebook any more, or the file repeats a key.
        """
        texts = text.split(self.separator) if self.cells else []
        if len(texts) != len(self.cells) or not all(part.endswith("\n") for part in texts):
            raise ValueError("an edit joins cells of the notebook")
        parts: list[str] = []
        done = 0
        for cell, joined in zip(self.cells, texts, strict=True):
            restored = self._restored(joined[:-1])
            if restored == cell.text:
                continue
            pieces = self._pieces.get(cell.number, [])
            if "".join(text for _, text in pieces) != cell.text:
                raise ValueError("the notebook repeats a key")
            for (start, end), code in self._changes(pieces, restored):
                parts += [self.file_text[done:start], code]
                done = end
        return "".join([*parts, self.file_text[done:]])

    def _restored(self, text: str) -> str:
        """A cell with the lines for IPython restored."""
        return re.sub(rf"[^\r\n]*{re.escape(self.mark)}", "", text)

    def _changes(self, pieces: list[tuple[_Span, str]], text: str) -> Iterator[tuple[_Span, str]]:
        """The changes to the JSON strings of a cell that give it the new text."""
        spans = [span for span, _ in pieces]
        before, after = [line for _, line in pieces], _LINE.findall(text)
        listed = self.file_text[spans[0][0]] == '"'
        if "".join(before) and before != _LINE.findall(
            "".join(before)
        ):  # several lines in one string of a list
            before, spans = ["".join(before)], [(spans[0][0], spans[-1][1])]
        first = spans[0][0]
        gap = self.file_text[spans[0][1] : spans[1][0]] if len(spans) > 1 else ""
        if listed and not gap:
            gap = "," + self.file_text[self.file_text.rindex("[", 0, first) + 1 : first]
        ascii_only = self.file_text.isascii() and "\\u" in self.file_text
        dumped = [json.dumps(line, ensure_ascii=ascii_only) for line in after]
        codes = dumped if listed else [code[1:-1] for code in dumped]
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for what, start, end, new_start, new_end in matcher.get_opcodes():
            code = gap.join(codes[new_start:new_end])
            if what == "replace":
                yield (spans[start][0], spans[end - 1][1]), code
            elif what == "insert" and start < len(spans):
                yield (spans[start][0], spans[start][0]), code + gap
            elif what == "insert":
                yield (spans[-1][1], spans[-1][1]), gap + code
            elif what == "delete" and end < len(spans):
                yield (spans[start][0], spans[end][0]), ""
            elif what == "delete":
                yield (spans[start - 1][1] if start else first, spans[end - 1][1]), ""


def read_notebook(data: bytes) -> Notebook:
    """Parse a notebook; one whose cells are not Python has no code.

    Raises:
        Unreadable: the bytes are not a notebook.
    """
    try:
        file_text = data.decode("utf-8")
        # the values of numbers do not matter, and `int` refuses 5,000 digits
        content = json.loads(file_text.removeprefix(_BOM), parse_int=float)
    except UnicodeDecodeError as error:
        raise Unreadable("the notebook is not UTF-8", data.count(b"\n", 0, error.start) + 1) from error
    except json.JSONDecodeError as error:
        raise Unreadable(f"the notebook is not JSON: {error.msg}", error.lineno, error.colno) from error
    except RecursionError as error:
        raise Unreadable("the notebook is nested too deep") from error
    if not isinstance(content, dict) or not isinstance(content.get("cells", content.get("worksheets")), list):
        raise Unreadable("not a notebook: it has no list of cells")
    sources = list(_code(content)) if _language(content) in _PYTHON else []
    everything = "\n".join(source for _, source, _ in sources)
    separator, mark = _unused(NEXT_CELL, everything) + "\n\n", _unused("  # IPython", everything) + ": "
    cells: list[_CodeCell] = []
    texts: list[str] = []
    line = 1
    has_unread = False
    for number, source, is_python in sources:
        text = as_python(source, mark) if is_python else None
        if text is None:
            has_unread = has_unread or not leaves_no_names(source)
            continue
        cells.append(_CodeCell(number, source, line))
        texts.append(text + "\n")
        line += len(LINE_END.findall(texts[-1])) + separator.count("\n")
    notebook = Notebook(file_text, tuple(cells), separator.join(texts), separator, mark, has_unread)
    tree = parsed(notebook.text)
    is_refused = isinstance(tree, SyntaxError) and not _is_of_newer_python(content)
    if is_refused or (isinstance(tree, ast.Module) and _joins(tree, cells)):
        notebook = _without_broken_cells(notebook, texts)
    return notebook


def _joins(tree: ast.Module, cells: list[_CodeCell]) -> bool:
    """Whether a statement spans two cells, such as a bracket that only the next cell closes."""
    starts = iter([cell.line for cell in cells[1:]])
    start = next(starts, None)
    for statement in tree.body:
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))
        while start is not None and start <= first:
            start = next(starts, None)
        if start is not None and start <= (statement.end_lineno or 0):
            return True
    return False


def _without_broken_cells(notebook: Notebook, texts: list[str]) -> Notebook:
    """The notebook with cells that Python cannot parse turned into comments, so that the others can be linted."""
    kept: list[str] = []
    refusals: list[Unreadable] = []
    mark = notebook.mark
    for cell, text in zip(notebook.cells, texts, strict=True):
        error = refusal(text)
        if error is None:
            kept.append(text)
            continue
        # with its last line feed, as a carriage return before that is no line end of its own
        comment = (mark + LINE_END.sub(rf"\g<0>{mark}", cell.text + "\n")).removesuffix(mark)
        where = refused(error, above=cell.line - 1)
        index = where.line - cell.line
        column = _unmarked(where.column, LINE_END.split(text)[index : index + 1], mark)
        is_below = index >= len(LINE_END.findall(comment))  # Python misses something after the last line
        refusals.append(Unreadable(where.reason, where.line, 1 if is_below else column + len(mark)))
        kept.append(comment)
    return replace(
        notebook,
        text=notebook.separator.join(kept),
        has_unread=notebook.has_unread or bool(refusals),
        refusals=tuple(refusals),
    )


def _unmarked(column: int, line: list[str], mark: str) -> int:
    """A column of a line of joined source, if there is such a line, in the cell: there it does not begin with our comment."""
    before, found, _ = "".join(line).partition(mark)
    return max(1, column - len(before) - len(mark)) if found else column


def write_notebook(text: str, like: bytes) -> bytes:
    """The notebook in `like` with `text` as the joined source of its cells.

    Raises:
        ValueError: the cells of the source do not match the notebook any more.
    """
    return read_notebook(like).rewritten(text).encode("utf-8")


def _code(content: dict[str, Any]) -> Iterator[tuple[int, str, bool]]:
    """The number and the source of each code cell, and whether the notebook declares it as Python.

    Before version 4 of the format, cells are in worksheets.
    """
    sheet = content if "cells" in content else next(iter(content["worksheets"]), None)
    cells = sheet.get("cells") if isinstance(sheet, dict) else None
    for number, cell in enumerate(cells if isinstance(cells, list) else (), start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        source = "".join(map(str, source)) if isinstance(source, list) else str(source)
        if source.strip():
            language = _text(cell, "metadata", "vscode", "languageId")  # VS Code: cells may have their own
            yield number, source, language is None or language in _PYTHON


def _language(content: dict[str, Any]) -> str:
    declared = (
        _text(content, "metadata", "language_info", "name"),
        _text(content, "metadata", "kernelspec", "language"),
        _text(content, "metadata", "application/vnd.databricks.v1+notebook", "language"),
    )
    language = next((name for name in declared if name is not None), None)
    if language is None:
        other = _OTHER_KERNELS.match(_text(content, "metadata", "kernelspec", "name") or "")
        language = other[0] if other is not None else "python"
    return language.lower()


def _is_of_newer_python(content: dict[str, Any]) -> bool:
    """Whether the notebook was run by a newer Python, which may know more syntax than this one."""
    declared = _text(content, "metadata", "language_info", "version") or ""
    version = re.match(r"([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", declared)
    return version is not None and (int(version[1]), int(version[2])) > sys.version_info[:2]


def _text(table: Any, *keys: str) -> str | None:
    """The text under these keys in nested tables; None if it is something else."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, str) else None


def _unused(word: str, text: str) -> str:
    """A variant of `word` that does not occur in the text."""
    while word in text:
        word += "_"
    return word


def _source_strings(text: str) -> Iterator[tuple[int, _Span, bool]]:
    """The JSON strings that hold the source of cells: cell number, span, and whether it is in a list."""
    path: list[str | int] = []  # the current index or key of each open list and object
    expects_key = False
    for match in _JSON_TOKEN.finditer(text):
        token = match[0]
        if token == "{":
            path.append("")
            expects_key = True
        elif token == "[":
            path.append(0)
            expects_key = False
        elif token in "}]":
            path.pop()
            expects_key = False
        elif token == ",":
            index = path[-1]
            expects_key = isinstance(index, str)
            if isinstance(index, int):
                path[-1] = index + 1
        elif expects_key:
            path[-1] = json.loads(token)
            expects_key = False
        else:
            match path[2:] if path[:2] == ["worksheets", 0] else path:
                case ["cells", int(index), "source" | "input"]:
                    yield index + 1, match.span(), False
                case ["cells", int(index), "source" | "input", int()]:
                    yield index + 1, match.span(), True
