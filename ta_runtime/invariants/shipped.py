"""The invariants that come with ta-runtime: what holds of every training loop, and is learned nowhere."""

from functools import cache
from pathlib import Path

from ta_runtime.invariants import file
from ta_runtime.invariants.invariant import Invariant

FILE = Path(__file__).with_name("shipped.json")
"""A file of invariants like any other: what is in it can be suppressed in one of the user's, by template and terms."""


@cache
def shipped() -> list[Invariant]:
    """All of them."""
    return file.load(FILE)
