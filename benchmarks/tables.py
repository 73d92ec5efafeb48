"""Tables of measured figures, as Markdown that reads as plain text."""

import platform
import statistics
from collections.abc import Iterator
from pathlib import Path


def spread(values: list[float]) -> str:
    """The median with the least and the most, three digits each."""
    median, least, most = (f"{value:.3g}" for value in (statistics.median(values), min(values), max(values)))
    return median if least == most else f"{median} ({least}-{most})"


def aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table; the first row is its header, and the first column stands to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    header, *body = rows
    yield _row(header, widths)
    yield (
        "|"
        + "|".join(f"{'-' * (width + 1)}{'-' if number == 0 else ':'}" for number, width in enumerate(widths))
        + "|"
    )
    for row in body:
        yield _row(row, widths)


def processor() -> str:
    """What the machine calls its processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    name, *figures = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {name.lstrip().ljust(widths[0])} | {' | '.join(figures)} |"
