"""TA911: messages of pyflakes, other than the undefined names that TA910 reports."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ta_lint.checks import MayGive, TextFinding, flakes, ta910_undefined_name
from ta_lint.core.source import Source

KEYWORDS = ()

# Notebook lines are counted per cell, but pyflakes names other statements by their line in the file.
_ELSEWHERE_IN_FILE = re.compile(r"(?: defined in enclosing scope)? (?:from|on) line \d+")

_UNDEFINED = ("UndefinedName", "UndefinedLocal", "ImportStarUsage")
_LEGAL_IN_A_CELL = "YieldOutsideFunction"  # pyflakes' message for an `await` at the top level


def check_text(source: Source, may_give: MayGive) -> Iterator[TextFinding]:
    messages = flakes.messages(source)
    if not messages:
        return
    notebook = PurePosixPath(source.path).suffix == ".ipynb"
    reported = {(report.line, report.column) for report in ta910_undefined_name.reports(source, may_give)}
    ends = _ends(source)
    for message in messages:
        name = type(message).__name__
        line, column = message.lineno, flakes.column(source, message.lineno, message.col)
        if (name in _UNDEFINED and (line, column) in reported) or (notebook and name == _LEGAL_IN_A_CELL):
            continue
        text = message.message % message.message_args
        text = _ELSEWHERE_IN_FILE.sub("", text) if notebook else text
        end_line, end_offset = ends.get((line, message.col), (line, message.col))
        if end_line > line:  # a multi-line node, such as a function, is reported on its first line
            end_column = len(source.lines[line - 1].rstrip()) + 1
        else:
            end_column = flakes.column(source, line, end_offset)
        yield TextFinding(line, column, line, end_column, f"{text} ({name})")


def _ends(source: Source) -> dict[tuple[int, int], tuple[int, int]]:
    """The end of the shortest node that starts at each position."""
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    for node in flakes.nodes(source):
        if isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg)):
            start = (node.lineno, node.col_offset)
            end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
            ends[start] = min(end, ends.get(start, end))
    return ends
