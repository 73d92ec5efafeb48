"""What a command says beside its report: lines on standard error."""

import sys

from ta_lint.core.terminal import harmless


def warn(text: str) -> None:
    print(f"ta-lint: warning: {harmless(text)}", file=sys.stderr)


def complain(text: str) -> None:
    """Name an error; what it leads to is up to the caller."""
    print(f"ta-lint: error: {harmless(text)}", file=sys.stderr)
