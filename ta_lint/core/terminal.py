"""What a terminal, or whoever stands in for one, is to be shown."""

import os

TYPE_CHECKING = False  # `typing` is not needed for more
if TYPE_CHECKING:
    from typing import TextIO


def wants_color(stream: "TextIO") -> bool:
    """Whether colours are to be written: what NO_COLOR says, then FORCE_COLOR, else to a terminal that has any.

    Empty variables say nothing: https://no-color.org, https://force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")
