"""`ta-runtime audit`: a model as it is built, looked at."""

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.commands import Commands, auditing
from ta_runtime.faults import without_ours

if TYPE_CHECKING:
    import torch

_DESCRIPTION = """\
Checks a model without training it. OBJECT is an nn.Module, its class (called without
arguments), or a function that returns a model or (model, optimizer).
"""

_EPILOG = """\
examples:
  ta-runtime audit models:Net                      the class Net of models.py
  ta-runtime audit models:Net -f json -o audit.json
  ta-runtime audit train:build --phase init        build() returns (model, optimizer)
  ta-runtime audit --list-rules                    the rules that a run sees
  ta-runtime audit --explain TA405                 the page of a rule, as `ta-lint rule`

exit status: 0 clean, 1 findings at or above --fail-level, 2 wrong usage, an
object that cannot be built, or a report that could not be written
"""


_BUILD = "write `def build(): ...; return model, optimizer`"


class _Print(argparse.Action):
    """Prints what `text` makes of the option's value, and ends."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, text: Callable[[str], str], **named: Any
    ) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, **named)
        self._text = text

    def __call__(self, parser: argparse.ArgumentParser, _: object, value: object, __: object = None) -> None:
        try:
            print(self._text(str(value)), end="")
        except UsageError as error:
            parser.error(str(error))
        parser.exit()


def add_lists(parser: argparse.ArgumentParser) -> None:
    """Add the options that print rules, as torch-audit has them."""
    parser.add_argument("--list-rules", action=_Print, nargs=0, text=lambda _: _list(),
                        help="list the rules that a run sees, and exit")  # fmt: skip
    parser.add_argument("--explain", action=_Print, metavar="RULE", text=_pages,
                        help="print the page of a rule, as `ta-lint rule` does, and exit")  # fmt: skip


def _list() -> str:
    from ta_lint.core.catalogue import catalogue
    from ta_lint.core.report import listed

    return listed(rule for rule in catalogue().values() if "runtime" in rule.observers)


def _pages(name: str) -> str:
    from ta_lint.core.catalogue import find

    return "\n".join(rule.page for rule in find(name))


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "audit",
        help="check a model and its optimizer without training",
        usage="ta-runtime audit [options] MODULE:OBJECT",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser, extra="runtime")
    parser.add_argument(
        "object", metavar="MODULE:OBJECT", help="for example models:Net or mypackage.train:build"
    )
    add_lists(parser)
    parser.add_argument("--phase", type=str.lower, choices=("static", "init"),
                       help="static: the model; init: the optimizer (default: the model, and the optimizer if given)")  # fmt: skip
    auditing.add_options(parser, script=False)


def run(arguments: argparse.Namespace) -> int:
    """Build the object and look at it; returns the exit status."""
    auditing.need_torch()
    from ta_runtime.probes.places import NOWHERE

    name, _, attribute = arguments.object.partition(":")
    if not name or not attribute:
        raise UsageError(f"{arguments.object}: write MODULE:OBJECT, such as models:Net")
    settings = auditing.settings(arguments, live=False, asks=True)
    with auditing.own_stdout(arguments, sys.stdout) as stream:
        sys.path.insert(0, str(Path.cwd()))
        audit = auditing.made(arguments, settings, optimizers=[])  # nothing is to step
        audit.start()
        try:
            model, optimizer = _built(name, attribute)
            session = audit.session
            if arguments.phase == "init" and optimizer is None:
                session.not_seen[f"{arguments.object} gives no optimizer to look at; {_BUILD}"] = 1
            if arguments.phase == "init":
                session.model(model, NOWHERE)  # whose parameters the optimizer has
            else:
                session.audit_model(model, NOWHERE)
            if arguments.phase != "static" and optimizer is not None:
                session.audit_optimizer(optimizer)
        finally:
            audit.stop()
        report = auditing.report(arguments, audit, stream)
    return auditing.status(arguments, audit, report)


def _built(name: str, attribute: str) -> "tuple[torch.nn.Module, torch.optim.Optimizer | None]":
    """The model, and the optimizer if there is one, that the object is, or that it makes."""
    import torch

    full = f"{name}:{attribute}"
    module = _called(full, "import", lambda: importlib.import_module(name))
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{full}: {name} has no {attribute}")
        found = getattr(found, part)
    if not isinstance(found, torch.nn.Module) and callable(found):
        found = _called(full, "call", found)
    model, optimizer = found if isinstance(found, (tuple, list)) and len(found) == 2 else (found, None)
    if not isinstance(model, torch.nn.Module) or not isinstance(
        optimizer, (torch.optim.Optimizer, type(None))
    ):
        kind = type(found).__name__
        raise UsageError(f"{full}: gives a {kind}, which is neither a torch.nn.Module nor (model, optimizer)")
    return model, optimizer


def _called(full: str, verb: str, function: "Callable[[], object]") -> object:
    """What the user's code returns; what it raises is shown as Python would, and is a `UsageError`."""
    if verb == "call":
        try:
            inspect.signature(function).bind()
        except TypeError as error:
            raise UsageError(
                f"{full}: {oneline(error)}; name a function without arguments that builds it"
            ) from error
        except ValueError:  # it has no signature to look at
            pass
    try:
        return function()
    except ModuleNotFoundError as error:
        if verb == "import" and error.name and full.partition(":")[0].startswith(error.name):
            raise UsageError(
                f"{full}: there is no module {error.name} in {Path.cwd()} or installed"
            ) from error
        failure: BaseException = error
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's
        failure = error
    trace = without_ours(failure.__traceback__)
    sys.excepthook(type(failure), failure.with_traceback(trace), trace)
    raise UsageError(f"{full}: to {verb} it raised {type(failure).__name__}") from failure
