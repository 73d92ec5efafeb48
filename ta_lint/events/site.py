"""A place of a run, as findings have it."""

from collections.abc import Sequence

from ta_lint.core.finding import Site
from ta_lint.events.place import Place


def site_of(place: Place, path: str, lines: Sequence[str]) -> Site:
    """The site in a file with these lines and this path in findings; the whole line where the place has no columns."""
    text = _line(lines, place.line)
    if place.column is None or place.end_column is None or place.end_line is None:
        start = len(text) - len(text.lstrip()) + 1
        return Site(path, place.line, start, place.line, max(len(text.rstrip()) + 1, start))
    end = _column(_line(lines, place.end_line), place.end_column)
    return Site(path, place.line, _column(text, place.column), place.end_line, end)


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1] if number <= len(lines) else ""


def _column(text: str, offset: int) -> int:
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1
