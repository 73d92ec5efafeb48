"""How far a command is, for those who wait at a terminal."""

import sys


def progress(text: str) -> None:
    """Show a line on standard error that the next one takes the place of; an empty one takes it away."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
