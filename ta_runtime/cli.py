"""The command `ta-runtime`."""

import argparse
import contextlib
import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, TextIO

from ta_lint import __version__

if TYPE_CHECKING:
    import torch

    from ta_runtime.audit import Audit
    from ta_runtime.settings import Settings

FORMATS = ("text", "concise", "json", "sarif", "github")
DOCUMENTS = ("json", "sarif")  # formats that a program reads: nothing else may stand on standard output
CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """\
examples:
  ta-runtime run train.py --lr 3e-4                  watch a script; what follows its name is its own
  ta-runtime run --lint train.py                     lint it first, and say what of that is true
  ta-runtime run --every 100 -m mypackage.train      a module, every 100th step audited in full
  ta-runtime run --output ta.sarif train.py          a file for code scanning
  torchrun --nproc-per-node 2 -m ta_runtime run train.py
                                                     every rank watches, rank 0 reports for all
  ta-runtime audit models:Net --phase static         look at a model without training it
  ta-runtime audit train:build --phase init          at an optimizer: build() returns (model, optimizer)

`ta-lint rule TA102` explains a rule.
"""

_RUN = """\
Runs a script as Python would, and watches its training steps. New findings are
told on standard error as they open, and a table ends the run; the script's own
standard output is left alone. With --output the report is written there as
well, anew at each finding, so that a job that is killed has its report up to
the step before. Options of ta-runtime stand before the script's name, and what
follows it is the script's own.
"""

_RUN_EPILOG = """\
examples:
  ta-runtime run train.py --lr 3e-4
  ta-runtime run --lint train.py                    what of the linter's suspicions is true
  ta-runtime run --every 100 --output ta.sarif -m mypackage.train
  ta-runtime run --fail-level error train.py        fail a CI job on an error

exit status: the script's own; with --fail-level, 1 if the script ended with 0
and there are such findings; 2 wrong usage or a report that could not be
written; 130 interrupted
"""

_AUDIT = """\
Looks at a model as it is built, without training it. OBJECT is a module of
torch, its class (called without arguments), or a function that returns a model
or (model, optimizer).
"""

_AUDIT_EPILOG = """\
examples:
  ta-runtime audit models:Net                      the class Net of models.py
  ta-runtime audit train:build --phase init        build() returns (model, optimizer)

exit status: 0 clean, 1 findings at or above --fail-level, 2 wrong usage, an
object that cannot be built, or a report that could not be written
"""

_SELECTORS = """\
A rule is named by an id (TA102), a prefix (TA1), a name (exploding-gradient),
or a tag (stability); several are separated by commas."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = _parsed(sys.argv[1:] if argv is None else argv)
    from ta_lint.core.errors import UsageError

    if importlib.util.find_spec("torch") is None:
        print("ta-runtime needs torch: pip install 'ta-lint[runtime]'", file=sys.stderr)
        return ERROR
    try:
        status: int = arguments.run(arguments)
        return status
    except UsageError as error:
        print(f"ta-runtime: error: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("ta-runtime: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # standard output: what concerns a file is a UsageError
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` may go when it likes
            what = error.filename or "cannot write the report"
            print(f"ta-runtime: error: {what}: {error.strerror}", file=sys.stderr)
        return ERROR
    except Exception as error:  # noqa: BLE001 - status 1 would say that there are findings
        import traceback

        traceback.print_exc()
        kind = type(error).__name__
        print(
            f"ta-runtime: error: {kind}, a defect of ta-runtime: please report what is above", file=sys.stderr
        )
        return ERROR


def _parsed(words: list[str]) -> argparse.Namespace:
    """The command line; what is wrong in it ends the process with status 2, after a hint at what may be meant."""
    parser = _parser()
    if words and words[0].endswith(".py"):
        parser.error(f"to watch a script, write `ta-runtime run {words[0]}`")
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        command: argparse.ArgumentParser = arguments.parser
        near = difflib.get_close_matches(unknown[0].partition("=")[0], command._option_string_actions, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="ta-runtime",
        description="Watches PyTorch training run, and finds the bugs that raise no error and train a worse model.",
        epilog=_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ta-runtime {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run",
        help="run a script and watch its training steps",
        usage="ta-runtime run [options] SCRIPT [ARGS ...]\n       ta-runtime run [options] -m MODULE [ARGS ...]",
        description=_RUN,
        epilog=_RUN_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,  # what looks like one may be the script's
    )
    run.set_defaults(run=_run, parser=run)
    run.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS ...]", help="the script and its arguments"
    )
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE [ARGS ...]",
                     help="run a module instead, as `python -m` does")  # fmt: skip
    run.add_argument(
        "--lint",
        action="store_true",
        help="lint the script first, with the modules of the project that it imports, and end with a verdict"
        " on each suspicion: confirmed, refuted or unobserved",
    )
    steps = run.add_argument_group("steps")
    steps.add_argument("--every", type=_steps, default=1000, metavar="N",
                       help="audit the first step and each N-th in full; 0: none (default: 1000)")  # fmt: skip
    steps.add_argument("--gradients-every", type=_steps, default=1, metavar="N",
                       help="look at gradients and loss of each N-th step; 0: never (default: 1)")  # fmt: skip
    steps.add_argument("--compiled", choices=("skip", "eager"), default="skip",
                       help="models under torch.compile: skip their layers, or run audited steps uncompiled")  # fmt: skip
    _add_shared(run)

    audit = commands.add_parser(
        "audit",
        help="look at a model and its optimizer without training",
        usage="ta-runtime audit [options] MODULE:OBJECT",
        description=_AUDIT,
        epilog=_AUDIT_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,
    )
    audit.set_defaults(run=_audit, parser=audit)
    audit.add_argument("object", metavar="MODULE:OBJECT", help="such as models:Net or mypackage.train:build")
    audit.add_argument("--phase", choices=("static", "init"),
                       help="static: the model; init: the optimizer (default: the model, and the optimizer if given)")  # fmt: skip
    _add_shared(audit).add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")
    return parser


def _add_shared(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The options of both commands; returns the group of those on output."""
    run = parser.prog.endswith("run")
    rules = parser.add_argument_group("rules", _SELECTORS)
    rules.add_argument(
        "--select", type=_listed, action="extend", metavar="RULES", help="look for these alone"
    )
    rules.add_argument(
        "--extend-select", type=_listed, action="extend", metavar="RULES", help="look for these as well"
    )
    rules.add_argument(
        "--ignore", type=_listed, action="extend", metavar="RULES", help="do not look for these"
    )
    output = parser.add_argument_group("output")
    where = (
        "json and sarif go to standard output, and what the script prints to standard error"
        if run
        else "text"
    )
    by_default = f"default: text; {where}" if run else "default: text"
    output.add_argument("--format", choices=FORMATS, help=f"how to report ({by_default})")
    output.add_argument("--output", type=Path, metavar="FILE",
                        help="write the report to a file; .sarif and .json name its format")  # fmt: skip
    output.add_argument("--quiet", "-q", action="store_true",
                        help="no lines while it runs and no table" if run else "print findings and nothing else")  # fmt: skip
    output.add_argument("--fail-level", type=str.lower, choices=("note", "warning", "error", "info", "warn", "fatal"),
                        metavar="{note,warning,error}",
                        help="the least severity that gives exit status 1"
                        + (" (default: none does)" if run else " (default: warning)"))  # fmt: skip
    known = parser.add_argument_group("baseline")
    known.add_argument(
        "--baseline", type=Path, metavar="FILE", help="do not count the findings recorded in FILE"
    )
    known.add_argument(
        "--update-baseline", action="store_true", help="record the present findings in the baseline"
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument("--config", type=Path, metavar="FILE", help="use this file's [tool.ta]")
    settings.add_argument("--isolated", action="store_true", help="read no configuration file")
    return output


def _listed(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names:
        raise argparse.ArgumentTypeError("no rule is named")
    return names


def _steps(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps, 0 or more")
    return int(text)


# -- run ------------------------------------------------------------------------------------------------------


def _run(arguments: argparse.Namespace) -> int:
    from ta_lint.core.errors import UsageError

    words = arguments.module if arguments.module is not None else arguments.script
    if not words:
        raise UsageError("name what to run: `ta-runtime run SCRIPT`, or `ta-runtime run -m MODULE`")
    program = _Module(words) if arguments.module is not None else _Script(words)
    from ta_runtime import api, ranks  # and torch, for seconds: not before it is known what to run

    settings = _settings(
        arguments,
        every_n_steps=arguments.every,
        gradients_every_n_steps=arguments.gradients_every,
        compiled=arguments.compiled,
        lint=arguments.lint,
        live=not arguments.quiet and _form(arguments) in ("text", *DOCUMENTS),
    )
    with _own_stdout(arguments) as stdout:
        audit = _made(arguments, settings, program.path)
        audit.lint()
        api.begin(audit, command=True)
        status, error = _finished(program)
        api.end(error)
        if ranks.rank() != 0:  # rank 0 speaks for all
            return status
        report = _report(arguments, audit, stdout)
    if status != CLEAN:
        return status
    if arguments.fail_level is not None and not arguments.update_baseline and _failing(arguments, audit):
        return FINDINGS
    return report


class _Script:
    """A script, to be run as `python SCRIPT ARGS` does."""

    def __init__(self, words: list[str]) -> None:
        from ta_lint.core.errors import UsageError

        self.path = words[0]
        self.arguments = words
        if not Path(self.path).is_file():
            why = "is a folder" if Path(self.path).is_dir() else "no such file"
            raise UsageError(f"{self.path}: {why}; to run a module, write -m before its name")

    def code(self) -> tuple[CodeType, ModuleType]:
        if not sys.flags.safe_path:
            sys.path[0] = str(Path(self.path).resolve().parent)
        module = ModuleType("__main__")
        vars(module).update(__file__=self.path, __builtins__=sys.modules["builtins"], __cached__=None)
        return compile(Path(self.path).read_bytes(), self.path, "exec", dont_inherit=True), module


class _Module:
    """A module, to be run as `python -m MODULE ARGS` does."""

    def __init__(self, words: list[str]) -> None:
        from ta_lint.core.errors import UsageError, oneline

        name = words[0]
        if not sys.flags.safe_path:
            sys.path[0] = str(Path.cwd())
        try:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations is not None:
                name = f"{name}.__main__"
                spec = importlib.util.find_spec(name)
        except (ImportError, ValueError) as error:
            raise UsageError(f"-m {words[0]}: {oneline(error)}") from error
        loader = spec.loader if spec is not None else None
        if spec is None or spec.origin is None or not hasattr(loader, "get_code"):
            raise UsageError(f"-m {words[0]}: there is no module {name} here")
        self._spec, self._loader = spec, loader
        self.path = spec.origin
        self.arguments = [spec.origin, *words[1:]]

    def code(self) -> tuple[CodeType, ModuleType]:
        spec = self._spec
        module = ModuleType("__main__")
        vars(module).update(
            __file__=spec.origin,
            __builtins__=sys.modules["builtins"],
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )
        return self._loader.get_code(spec.name), module  # type: ignore[union-attr]


def _finished(program: _Script | _Module) -> tuple[int, BaseException | None]:
    """Run it in this process, and let it end as under Python; returns its exit status, and what it raised.

    The module `__main__` stays in place afterwards, for what runs at exit, in threads and in pickles.
    """
    sys.argv[:] = program.arguments
    try:
        code, module = program.code()
        sys.modules["__main__"] = module
        if (
            "__mp_main__" in sys.modules
        ):  # its name in children that `multiprocessing` spawns, whose pickles come here
            sys.modules["__mp_main__"] = module
        exec(code, vars(module))  # noqa: S102 - to run it is what the command is for
    except SystemExit as error:
        return _status_of(error), error
    except BaseException as error:  # noqa: BLE001 - it is the script's
        trace = _without_ours(error.__traceback__)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return (INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1), error
    return CLEAN, None


def _status_of(error: SystemExit) -> int:
    """What Python makes of it."""
    if error.code is None:
        return CLEAN
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    own = str(Path(__file__))
    while trace is not None and trace.tb_frame.f_code.co_filename == own:
        trace = trace.tb_next
    return trace


# -- audit ----------------------------------------------------------------------------------------------------


def _audit(arguments: argparse.Namespace) -> int:
    from ta_lint.core.errors import UsageError
    from ta_runtime.places import NOWHERE

    name, _, attribute = arguments.object.partition(":")
    if not name or not attribute:
        raise UsageError(f"{arguments.object}: write MODULE:OBJECT, such as models:Net")
    settings = _settings(arguments, live=False)
    with _own_stdout(arguments) as stdout:
        sys.path.insert(0, str(Path.cwd()))
        audit = _made(arguments, settings, optimizers=[])  # nothing is to step
        audit.start()
        try:
            model, optimizer = _built(name, attribute)
            if arguments.phase == "init" and optimizer is None:
                example = f"`def build(): ...; return model, optimizer`, and audit {name}:build"
                raise UsageError(f"{arguments.object} gives no optimizer: write a function such as {example}")
            session = audit.session
            facts = session.model(model, NOWHERE)
            if arguments.phase != "init":
                session.audit("model", facts)
            if arguments.phase != "static" and optimizer is not None:
                session.audit("optimizer", session.optimizers.facts(optimizer))
        finally:
            audit.stop()
        report = _report(arguments, audit, stdout)
    if (
        report == CLEAN
        and not arguments.exit_zero
        and not arguments.update_baseline
        and _failing(arguments, audit)
    ):
        return FINDINGS
    return report


def _built(name: str, attribute: str) -> "tuple[torch.nn.Module, torch.optim.Optimizer | None]":
    """The model, and the optimizer if there is one, that the object is, or that it makes."""
    import torch

    from ta_lint.core.errors import UsageError

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
    from ta_lint.core.errors import UsageError, oneline

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
    trace = _without_ours(failure.__traceback__)
    sys.excepthook(type(failure), failure.with_traceback(trace), trace)
    raise UsageError(f"{full}: to {verb} it raised {type(failure).__name__}") from failure


# -- what both do ---------------------------------------------------------------------------------------------


def _settings(arguments: argparse.Namespace, **steps: object) -> "Settings":
    from ta_lint.core.errors import UsageError
    from ta_runtime.settings import resolve

    settings = resolve(
        rules=arguments.select,
        extend_select=arguments.extend_select or (),
        ignore=arguments.ignore or (),
        baseline=arguments.baseline,
        config_file=arguments.config,
        isolated=arguments.isolated,
        keys=("--select", "--ignore", "--baseline"),
        **steps,  # type: ignore[arg-type]
    )
    if arguments.update_baseline and settings.baseline is None:
        raise UsageError("--update-baseline: name the file with --baseline FILE, or set [tool.ta] baseline")
    return settings


def _made(
    arguments: argparse.Namespace,
    settings: "Settings",
    script: str = "",
    optimizers: "list[torch.optim.Optimizer] | None" = None,
) -> "Audit":
    from ta_runtime.audit import Audit
    from ta_runtime.reports import ReportFile

    files = [ReportFile(arguments.output, arguments.format)] if arguments.output is not None else []
    recording = arguments.update_baseline
    return Audit(settings, optimizers=optimizers, files=files, recording=recording, place=script)


def _form(arguments: argparse.Namespace) -> str:
    form: str = arguments.format or "text"
    return form


@contextlib.contextmanager
def _own_stdout(arguments: argparse.Namespace) -> "Iterator[TextIO]":
    """Where the report goes: standard output if a program is to read it, and then nothing else may go there.

    The script's output, and that of the processes it starts, then goes to standard error, for good: what it prints at
    exit as well.
    """
    if arguments.output is not None or _form(arguments) not in DOCUMENTS:
        yield sys.stderr if arguments.run is _run else sys.stdout
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as stream:
        os.dup2(2, 1)
        yield stream


def _report(arguments: argparse.Namespace, audit: "Audit", stream: TextIO) -> int:
    """Record the baseline, or print what was asked for; returns an exit status, without regard to findings."""
    from ta_lint.core.files import display
    from ta_runtime.reports import error_line, wants_color

    written = ERROR if any(file.complaint is not None for file in audit.files) else CLEAN
    known = audit.settings.baseline
    if arguments.update_baseline:
        assert known is not None
        count = audit.record()
        if not arguments.quiet:
            error_line(f"recorded {'1 finding' if count == 1 else f'{count} findings'} in {display(known)}")
        return written
    form = _form(arguments)
    told = arguments.run is _run and form == "text"  # by the table
    if arguments.output is None and not told:
        stream.write(audit.rendered(form, color=wants_color(stream), brief=arguments.quiet))
        stream.flush()
    if known is not None and not arguments.quiet and (stale := audit.stale):
        entries, match, them = ("1 entry", "matches", "it")
        if len(stale) > 1:
            entries, match, them = (f"{len(stale)} entries", "match", "them")
        error_line(
            f"{entries} of {display(known)} {match} nothing in this run; --update-baseline drops {them}"
        )
    return written


def _failing(arguments: argparse.Namespace, audit: "Audit") -> bool:
    from ta_runtime.settings import severity

    level = arguments.fail_level
    return audit.failing(severity(level) if level is not None else audit.settings.config.fail_level)
