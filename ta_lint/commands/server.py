"""`ta-lint server`: the language server, on standard input and output."""

import argparse
import os
import signal
import sys

from ta_lint.commands import CLEAN, FINDINGS
from ta_lint.core.arguments import Parser

_ABOUT = """\
Speaks the Language Server Protocol on standard input and output: findings while
you type, fixes and ignore comments as actions, and the page of a rule on hover.
Each file uses the nearest settings, as with `ta-lint check`. Install it with
pip install 'ta-lint[server]'.
"""

_STATUS = """\
docs/editors.md has the settings for VS Code, Neovim, Helix, Emacs and Zed.

exit status: 0 the editor closed it, 1 the editor left without a shutdown request, 2 pygls is not installed
"""

_LONELY = """\
ta-lint server speaks the Language Server Protocol on standard input, so an editor should start it (docs/editors.md).
To lint files here, use `ta-lint check`. Ctrl-C ends the server.
"""


def add_arguments(parser: Parser) -> None:
    parser.works_alone = True
    parser.description, parser.epilog = _ABOUT, _STATUS
    parser.add_argument("--stdio", action="store_true", help="has no effect; some editors add it")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client leaves; return the exit status.

    Raises:
        UsageError: a package that the server needs is not installed.
    """
    from ta_lint.core.errors import UsageError

    try:
        from ta_lint.server.app import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("lsprotocol", "pygls"):
            raise
        raise UsageError(
            f"server: the module {error.name} is missing; pip install 'ta-lint[server]'"
        ) from error
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("server: standard input is closed; an editor starts this command")
    if sys.stdin.isatty():
        print(_LONELY, end="", file=sys.stderr)
    # there is nothing to clean up, and a thread that waits for input cannot be stopped
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps stray prints out of the messages
    return CLEAN if serve(sys.stdin.buffer, messages) else FINDINGS
