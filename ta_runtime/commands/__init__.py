"""What each command of `ta-runtime` does: of the module that is named as the command, `add(commands)` adds its arguments to
the command line, and `run(arguments)` does it and returns the exit status.

`--help` loads all of them, so that none imports torch or pyarrow before it runs.
"""

import argparse
from typing import TypeAlias

from ta_lint.core.arguments import Parser

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What `add_subparsers` returns."""

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130
