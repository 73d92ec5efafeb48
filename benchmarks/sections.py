"""The parts of documents that programs make, each between two comments that say so."""

import re
from pathlib import Path


def section(document: Path, maker: str) -> str:
    """What stands between the comments of this maker, `benchmarks/lint.py`, and the end.

    Raises:
        ValueError: the document has no such part, or several.
    """
    [made] = _part(maker).findall(document.read_text(encoding="utf-8"))
    return str(made)


def write_section(document: Path, maker: str, made: str) -> None:
    """Put this between the comments instead, with a line end at its own end.

    Raises:
        ValueError: as for `section`.
    """
    section(document, maker)
    text = document.read_text(encoding="utf-8")
    document.write_text(_part(maker).sub(lambda _: made, text), encoding="utf-8")


def _part(maker: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- made by {re.escape(maker)} -->\n).*?(?=<!-- end -->)", re.DOTALL)
