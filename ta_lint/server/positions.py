"""Converts positions of the linter, in lines and code points from 1, to the protocol's, in the client's units from 0."""

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

from ta_lint.core.finding import Site
from ta_lint.server.documents import Document, TextPart


def position(part: TextPart, line: int, column: int, codec: PositionCodec) -> Position:
    """The protocol's position for a line and a column of a part."""
    text = part.lines[line - 1] if line <= len(part.lines) else ""
    return Position(line - 1, codec.client_num_units(text[: column - 1]))


def part_of(document: Document, cell: int | None) -> TextPart:
    """The part of the cell with this number, from 1; without cells, the only part."""
    return document.parts[cell - 1 if cell is not None and document.has_cells else 0]


def place(document: Document, site: Site, codec: PositionCodec) -> tuple[TextPart, Range]:
    """The part and range of a site. In a notebook that is open as text, the range is a whole line of that text."""
    part = part_of(document, site.cell.number if site.cell is not None else None)
    if site.cell is not None and not document.has_cells:
        line = site.cell.file_line
        end = len(part.lines[line - 1]) + 1
        return part, Range(position(part, line, 1, codec), position(part, line, end, codec))
    start = position(part, site.line, site.column, codec)
    return part, Range(start, position(part, site.end_line, site.end_column, codec))


def overlap(first: Range, second: Range) -> bool:
    """Whether two ranges overlap or touch."""
    return _key(first.start) <= _key(second.end) and _key(second.start) <= _key(first.end)


def _key(place: Position) -> tuple[int, int]:
    return place.line, place.character
