"""The commands of `ta-lint`: each module has the name of its command, with `add_arguments(parser)` and `run(arguments)`.

`ta_lint.cli` imports only the module of the command that runs, so no command pays for another.
"""

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130

EXAMPLES = """\
examples:
  ta-lint check                                   lint every Python file and notebook below this folder
  ta-lint check train.py --select loop,TA4        only rules tagged loop, and all of TA4xx
  ta-lint check --fix --show-fixes                make the safe fixes, and list them; --unsafe-fixes adds the rest
  ta-lint check --add-noqa                        suppress all findings by comments
  ta-lint check --watch                           lint again whenever a file is saved
  ta-lint check -f sarif -o ta.sarif              write a file for code scanning
  ta-lint check - --stdin-filename train.py       lint standard input; with --fix print the fixed source
  ta-lint merge lint.sarif run.sarif              confirm or refute findings by a run
  ta-lint rule TA600                              explain a rule, with examples
  ta-lint explain train.py                        tell its training as the linter understands it, without running it
  ta-lint rules loop                              list rules, with what each finds; `ta-lint rule --all` explains all
  ta-lint clean                                   remove the cache

exit status: 0 clean, 1 findings at or above --fail-level, or with --diff something to fix,
             2 wrong usage or a file that could not be written, 130 interrupted
"""
"""Shown below the help of `ta-lint`, and of `ta-lint check`."""
