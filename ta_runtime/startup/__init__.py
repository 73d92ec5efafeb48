"""How a process that a watched script starts begins to be watched itself: once it has torch, and never before.

What is to be done then is a pickled call in a file of the parent's. It is made by `call`, and returns what is to be
called at the end. This module loads nothing, as it is all that a process without torch gets to see.
"""

import contextlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = str(Path(__file__).parent)
"""What stands first in `PYTHONPATH` of a program that is to be watched: Python runs `sitecustomize` from there."""
VARIABLE = "TA_RUNTIME_BEGIN"
"""The environment variable that names the file."""

_ends: list[Callable[[int], object]] = []


class Bootstrap:
    """Stands in for `_bootstrap` of a process of `multiprocessing` while it is started, and so travels to the child."""

    def __init__(self, process: Any, path: str) -> None:
        self.process, self.path = process, path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        vars(self.process).pop("_bootstrap", None)
        begin(self.path)
        status = 1
        try:
            status = self.process._bootstrap(*args, **kwargs)
        finally:
            while _ends:
                with contextlib.suppress(Exception):
                    _ends.pop()(status)
        return status


def begin(path: str) -> None:
    """Make the call now if the process has torch, else when it loads it."""
    _ends.clear()  # of the parent, in a fork of it
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Waiting)]
    if "torch" in sys.modules:
        call(path)
    else:
        sys.meta_path.insert(0, _Waiting(path))


def call(path: str) -> None:
    """Make the call; if it fails, the process is not watched, and runs as it would have."""
    try:
        _ends.append(pickle.loads(Path(path).read_bytes())())
    except FileNotFoundError:  # the parent has ended
        return
    except Exception as error:  # noqa: BLE001 - whatever it is
        with contextlib.suppress(Exception):
            print(f"ta-runtime: process {os.getpid()} is not watched: {error!r}", file=sys.stderr)


class _Waiting:
    """Finds torch as the other finders do, and makes the call when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if name != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((found for each in others if (found := each.find_spec(name, path, target))), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            vars(spec.loader)["exec_module"] = _Executing(self, spec.loader)
        return spec


class _Executing:
    """Stands in for `exec_module` of the loader of torch, once."""

    def __init__(self, waiting: _Waiting, loader: Any) -> None:
        self._waiting, self._loader = waiting, loader

    def __call__(self, module: ModuleType) -> None:
        vars(self._loader).pop("exec_module", None)
        self._loader.exec_module(module)
        if self._waiting in sys.meta_path:
            sys.meta_path.remove(self._waiting)
            call(self._waiting.path)
