"""Numbers, counts and the text of findings as the page has them."""

import math
from collections.abc import Sequence
from typing import Any

_JSON = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def number(value: float) -> str:
    """Four significant digits, or an integer in groups of three."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"


def short(value: float) -> str:
    """At most seven characters, for the cell of a map."""
    return "NaN" if math.isnan(value) else f"{value:.2g}"


def seconds(value: float) -> str:
    """A duration in the unit that fits it."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


GIGABYTE = 1e9


def size(value: float) -> str:
    """Bytes in the unit that fits them."""
    return f"{value / GIGABYTE:.3g} GB" if value >= GIGABYTE else f"{value / 1e6:.3g} MB"


def share(value: float) -> str:
    """Of one, in per cent."""
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.1f} %"


def counted(count: int, noun: str) -> str:
    """Such as `1 step` or `1,200 steps`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(parts: Sequence[str]) -> str:
    """Such as `a, b and c`."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def json_of(value: Any) -> str:
    """As JSON that may stand in a `script` element: nothing in it ends that, or is a number that JSON does not know."""
    import json

    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_JSON)
