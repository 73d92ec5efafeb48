"""The user's program, run in this process as Python would run it."""

import contextlib
import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.faults import without_ours

_INTERRUPTED = 130


class Interrupted(KeyboardInterrupt):
    """The program was interrupted, and has been told so: the process ends by the signal, as it would under Python."""


class Script:
    """A script, to be run as `python SCRIPT ARGS` does."""

    def __init__(self, words: list[str]) -> None:
        named = words[0]
        if not Path(named).is_file():
            why = "is a folder" if Path(named).is_dir() else "no such file"
            raise UsageError(f"{named}: {why}; to run a module, write -m before its name")
        self.path = os.path.join(os.getcwd(), named)  # noqa: PTH109, PTH118 - as Python: no `..` is resolved, no `.` left out
        self.arguments = words

    def code(self) -> tuple[CodeType, ModuleType]:
        if not sys.flags.safe_path:
            sys.path[0] = str(Path(self.path).resolve().parent)
        loader = SourceFileLoader("__main__", self.path)
        module = _main(__file__=self.path, __cached__=None, __loader__=loader)
        return compile(loader.get_data(self.path), self.path, "exec", dont_inherit=True), module


class Module:
    """A module, to be run as `python -m MODULE ARGS` does."""

    def __init__(self, words: list[str]) -> None:
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
        module = _main(
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )
        return self._loader.get_code(spec.name), module  # type: ignore[union-attr]


def _main(**names: object) -> ModuleType:
    """The module `__main__` as Python makes it, with these of its names."""
    module = ModuleType("__main__")
    vars(module).update(__builtins__=sys.modules["builtins"], **names)
    if sys.version_info < (3, 14):  # from there on a module has them once it annotates something
        vars(module)["__annotations__"] = {}
    return module


def finished(program: Script | Module) -> tuple[int, BaseException | None]:
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
        _leave_out_ours(error)
        trace = error.__traceback__
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        sys.excepthook(type(error), error, trace)
        return (_INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1), error
    return 0, None


def _status_of(error: SystemExit) -> int:
    """What Python makes of it."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    if sys.stderr is not None:  # else `print` would take standard output
        with contextlib.suppress(OSError, ValueError):
            print(error.code, file=sys.stderr)
    return 1


def _leave_out_ours(error: BaseException | None) -> None:
    """Take the frames of this package out of the traceback of an exception, and of those that led to it."""
    known: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in known:
            continue
        known.add(id(each))
        each.__traceback__ = without_ours(each.__traceback__)
        waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
