"""Waits until a process loads torch. `sitecustomize` runs this as a text: a program that does not load it finds no module of ours."""

import sys

TYPE_CHECKING = False  # `typing` takes a hundredth of a second
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def begin(call: "Callable[[], object]") -> None:
    """Call a function now if the process has torch, else when it loads it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not hasattr(finder, "ta_runtime_waits")]
    if "torch" in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Waiting(call))


class _Waiting:
    """Finds torch as the other finders do, and makes the call when it is loaded."""

    ta_runtime_waits = True

    def __init__(self, call: "Callable[[], object]") -> None:
        self.call = call

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((found for each in others if (found := each.find_spec(name, path, target))), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            vars(spec.loader)["exec_module"] = _Executing(self, spec.loader)
        return spec


class _Executing:
    """Stands in for `exec_module` of the loader of torch, once."""

    def __init__(self, waiting: _Waiting, loader: "Any") -> None:
        self._waiting, self._loader = waiting, loader

    def __call__(self, module: "Any") -> None:
        vars(self._loader).pop("exec_module", None)
        self._loader.exec_module(module)
        if self._waiting in sys.meta_path:
            sys.meta_path.remove(self._waiting)
            self._waiting.call()
