"""A comparison as text, for a terminal."""

import textwrap
from collections.abc import Iterator

from ta_runtime.diff import words
from ta_runtime.diff.comparison import Comparison

_WIDTH = 110
_NAMES = 15
"""Columns for what a line is about."""
_SETTINGS = 20
"""Settings that are listed; more are counted."""


def as_text(comparison: Comparison, *, color: bool = False) -> str:
    """The comparison, with colours if they are wanted."""
    return "\n".join(_lines(comparison, color)) + "\n"


def _lines(comparison: Comparison, color: bool) -> Iterator[str]:
    bold, red, green, faint, end = (
        ("\033[1m", "\033[31m", "\033[32m", "\033[2m", "\033[0m") if color else ("",) * 5
    )
    if comparison.across_ranks:
        yield f"{faint}run{end}  {words.about(comparison.a)}"
        yield f"{faint}A{end}    rank {comparison.ranks[0]}, {faint}B{end} each of the others"
    else:
        yield f"{faint}A{end}  {words.about(comparison.a)}"
        yield f"{faint}B{end}  {words.about(comparison.b)}"
    yield ""
    yield f"{bold}{green if comparison.equal else red}{words.headline(comparison)}{end}"
    if comparison.settings:
        yield ""
        yield f"{bold}{words.SETTINGS}{end}"
        yield from _settings(comparison)
        if comparison.first is not None and comparison.first is not comparison.numbers:
            yield from _field("cause", comparison.first.cause)
    if comparison.numbers is not None:
        yield ""
        yield f"{bold}{words.NUMBERS}{end}"
        for name, text in words.first(comparison, comparison.numbers):
            yield from _field(name, text)
        yield from _field("cause", words.cause(comparison, comparison.numbers))
    for repeated in comparison.repeated:
        yield ""
        yield from _wrapped(words.repeated(repeated, comparison.ranks[0]))
    if notes := words.notes(comparison):
        yield ""
        for note in notes:
            yield from _wrapped(note)


def _settings(comparison: Comparison) -> Iterator[str]:
    shown = comparison.settings[:_SETTINGS]
    width = max(len(f"{each.kind} {each.name}") for each in shown)
    for each in shown:
        when = f"  from step {each.step}" if each.step >= 0 else ""
        who = f"  rank {each.rank}" if comparison.across_ranks else ""
        yield f"  {f'{each.kind} {each.name}':{width}}  {words.value(each.a)} | {words.value(each.b)}{when}{who}"
    if more := len(comparison.settings) - len(shown):
        yield f"  and {more} more"


def _field(name: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {name:<{_NAMES}}",
        subsequent_indent=" " * (2 + _NAMES),
        break_on_hyphens=False,
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False)
