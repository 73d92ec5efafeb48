"""A preflight in the terminal."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ta_lint.core.files import display
from ta_lint.core.terminal import harmless, painter, width_of
from ta_runtime.preflight import words
from ta_runtime.preflight.briefing import Briefing
from ta_runtime.preflight.reading import Piece, Reading

_WIDTH = 88
"""Cells of a line of what a model reads."""
_STYLES = {
    "learned": "green",
    "masked": "",
    "padding": "bright_black",
    "leaking": "bold red",
    "special": "bold",
    "joint": "bold yellow",
}

_Line = list[tuple[str, str]]
"""Texts, each with its style."""


def rendered(briefing: Briefing, root: Path, *, color: bool = False) -> str:
    """All there is to show, but the findings."""
    paint = painter(color)
    lines = ([(line, "")] if isinstance(line, str) else line for line in _lines(briefing, root))
    return "".join(f"{''.join(paint(harmless(text), style) for text, style in line)}\n" for line in lines)


def _lines(briefing: Briefing, root: Path) -> Iterator[str | _Line]:
    name = Path(briefing.script).name or "the script"
    yield f"{name}: {briefing.until_first_step:.1f} s to its first step; looked at for {briefing.seconds:.1f} s"
    for peeked in briefing.loaders:
        title, what = words.loader(peeked)
        yield ""
        yield f"{title} ({_place(peeked.path, peeked.line, root)})"
        yield f"  {what}"
        yield from (f"  {line}" for line in words.looked_into(peeked))
    for call in briefing.entrances:
        yield ""
        yield f"{words.entrance(call)} ({_place(call.path, call.line, root)})"
        for each in call.inputs:
            yield f"  {each.name}: {words.kind(each)}, {words.content(each)}"
            if each.histogram:
                yield f"    {words.bars(each.histogram)}"
        for read in call.readings:
            yield ""
            yield from _reading(read)
    for loss in briefing.aims:
        yield ""
        yield f"{words.aim(loss)} ({_place(loss.path, loss.line, root)})"
        yield f"  {words.targets(loss)}"
    if briefing.tried:
        yield ""
        yield "tried on copies"
        yield from (f"  {line}" for line in briefing.tried)
    if briefing.not_tried:
        yield ""
        yield from (f"not looked at: {line}" for line in briefing.not_tried)


def _reading(read: Reading) -> Iterator[str | _Line]:
    yield f"  {words.read(read)}"
    yield f"  {words.learned(read)}"
    for number, row in read.shown.items():
        yield from _row(f"row {number}", row)
    if key := words.key(read):
        yield [("    ", ""), *(part for each in key for part in _meaning(*each))][:-1]


def _meaning(kind: str, sign: str, meaning: str) -> _Line:
    return [(sign, _STYLES[kind]), (f" {meaning}", ""), ("   ", "")]


def _row(title: str, row: list[Piece]) -> Iterator[_Line]:
    """The text of a row in lines, and below each the signs of what the loss makes of it."""
    margin = " " * len(title)
    for number, line in enumerate(_wrapped(row)):
        yield [(f"    {title if not number else margin}  ", ""), *((text, style) for text, style, _ in line)]
        signs = "".join(sign * sum(map(width_of, text)) for text, _, sign in line)
        if signs.strip():
            yield [(f"    {margin}  {signs.rstrip()}", "")]


def _wrapped(row: list[Piece]) -> Iterator[list[tuple[str, str, str]]]:
    """Lines of texts, each with its style and its sign."""
    line: list[tuple[str, str, str]] = []
    used = 0
    for character, style, sign in _characters(row):
        width = width_of(character)
        if used + width > _WIDTH:
            yield _joined(line)
            line, used = [], 0
        line.append((character, style, sign))
        used += width
    yield _joined(line)


def _characters(row: list[Piece]) -> Iterator[tuple[str, str, str]]:
    for piece in row:
        if piece.begins:
            yield "|", _STYLES["joint"], " "
        style = f"{_STYLES[piece.role]} {_STYLES['special'] if piece.special else ''}".strip()
        sign, _ = words.SIGNS.get(piece.role, (" ", ""))
        yield from ((character, style, sign) for character in harmless(words.piece(piece)))


def _joined(line: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [
        ("".join(character for character, *_ in alike), style, sign)
        for (style, sign), alike in groupby(line, lambda each: each[1:])
    ]


def _place(path: str, line: int, root: Path) -> str:
    return f"{display(root / path)}:{line}"
