"""`ta-lint explain`: tells the training of a script as the linter understands it."""

import argparse

from ta_lint.commands import CLEAN
from ta_lint.core.arguments import Parser

_EXAMPLES = """\
examples:
  ta-lint explain train.py                   the loops of the script, what each line does, and what is not known
  ta-lint explain train.py:train_one_epoch   only what happens in this function
  ta-lint explain train.py:Trainer.fit       or in this method
  ta-lint explain train.py -f json           the same for a program

The script is not run: the linter executes it on values of which it knows a part. A line marked `perhaps` depends on something that it
does not know.
"""


def add_arguments(parser: Parser) -> None:
    parser.usage = "ta-lint explain [options] PATH[:FUNCTION]"
    parser.description = (
        "Tells the training of a script as the linter understands it, and what it does not know."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "path", metavar="PATH[:FUNCTION]", help="a Python file, and a function or method in it"
    )
    parser.add_argument(
        "--format", "--output-format", "-f", choices=("text", "json"), default="text", help="(default: text)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; return the exit status.

    Raises:
        UsageError: there is no such file or function, or the file is no Python.
    """
    from dataclasses import asdict
    from pathlib import Path

    from ta_lint.core.catalogue import catalogue
    from ta_lint.core.errors import UsageError
    from ta_lint.dryrun.dryrun import dry_run
    from ta_lint.dryrun.explain import explanation, text

    path, function = arguments.path, ""
    if not Path(path).exists() and ":" in path:
        path, _, function = path.rpartition(":")
    if path in catalogue():
        raise UsageError(f"{path} is a rule; write `ta-lint rule {path}`")
    if not Path(path).is_file():
        raise UsageError(f"{path}: {'a folder; name a file' if Path(path).is_dir() else 'no such file'}")
    given, path = path, str(Path(path).resolve())  # the files beside it are found by their folder
    machine = dry_run(path)
    if machine.program.tree(path) is None:
        raise UsageError(f"{given}: this is no Python that can be read; `ta-lint check {given}` says where")
    if function and not machine.program.defines(path, function):
        raise UsageError(f"{given}: no function or method {function}")
    told = explanation(machine, path, function or None)
    if arguments.format == "json":
        import json

        print(json.dumps(asdict(told), indent=2))
        return CLEAN
    for line in text(told):
        print(line)
    if not told.parts:
        print(f"{arguments.path}: nothing here trains: no call of a model, no loss, no optimizer")
    return CLEAN
