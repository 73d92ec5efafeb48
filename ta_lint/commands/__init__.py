"""What each command of `ta-lint` does: `run(arguments)` of the module that is named as the command.

`ta_lint.cli` knows their arguments and imports the one that runs: what a command does not need costs it nothing.
"""

from pathlib import Path

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130

STDIN = Path("-")
