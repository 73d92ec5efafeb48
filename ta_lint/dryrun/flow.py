"""How a block of statements ends."""

from enum import Enum


class Flow(Enum):
    """How a block of statements ends."""

    ON = "the next statement runs"
    RETURN = "the function returns"
    BREAK = "the loop ends"
    CONTINUE = "the next pass begins"
    GONE = "no path leads on: each has left, and what it left is kept"
