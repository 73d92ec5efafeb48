"""Messages of a command on standard error, beside its report."""

import sys

from ta_lint.core.terminal import harmless


def warn(text: str) -> None:
    print(f"ta-lint: warning: {harmless(text)}", file=sys.stderr)


def complain(text: str) -> None:
    """Print an error; the caller decides what follows."""
    print(f"ta-lint: error: {harmless(text)}", file=sys.stderr)
