"""What modules and parameters are called in the keys of a monitor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import is_, methodcaller
from typing import Any

from torch import Tensor, nn

from ta_runtime.measure.tree import tensors
from ta_runtime.naming import stripped

ROOT = "[root module]"


def format_module_name(name: str) -> str:
    """The name of a module or a parameter as it is, `[root module]` for the model."""
    return name or ROOT


def outputs(module: str, output: Any) -> Iterable[tuple[str, Tensor]]:
    """The tensors that a module puts out: one by the module's name, several by their places in what it returns.

    These are `encoder[0]`, or `encoder[hidden.1]`.
    """
    if isinstance(output, Tensor):
        return ((module, output),)
    return ((f"{module}[{path}]", tensor) for path, tensor in tensors(output))


class MonitoredNames:
    """The names in one model, as it is when it is asked: layers may be added, parameters replaced at any time."""

    def __init__(self, model: nn.Module, format_name: Callable[[str], str]) -> None:
        self._model = model
        self._format = format_name
        self._formatted: dict[str, str] = {}
        self._paths: dict[nn.Module, str] = {}
        self._children = self._held = _Entries()
        self._parameters: dict[str, Tensor] = {}
        self.modules: dict[nn.Module, str] = {}
        """The formatted name of each module."""
        self.refresh()

    def refresh(self) -> bool:
        """Look again which modules there are; whether others than before."""
        children = _Entries([module._modules for module in self._paths])
        if self._paths and children == self._children:
            return False
        self._paths = {module: path for path, module in self._model.named_modules()}
        self._children = _Entries([module._modules for module in self._paths])
        self._held = _Entries()
        self.modules = {module: self._of(path) for module, path in self._paths.items()}
        return True

    def parameters(self) -> Mapping[str, Tensor]:
        """Each parameter of these modules once, by the first of its names."""
        held = _Entries([module._parameters for module in self._paths])
        if held != self._held:
            self._held = held
            self._parameters = {}
            seen = set()
            for module, path in self._paths.items():
                for key, parameter in module._parameters.items():
                    if parameter is not None and id(parameter) not in seen:
                        seen.add(id(parameter))
                        self._parameters[self._of(f"{path}.{key}" if path else key)] = parameter
        return self._parameters

    def _of(self, path: str) -> str:
        if path not in self._formatted:
            self._formatted[path] = self._format(stripped(self._model, path))
        return self._formatted[path]


_values = methodcaller("values")


class _Entries:
    """What is in some dictionaries; equal if it is the very same, under the same keys."""

    def __init__(self, dictionaries: Sequence[Mapping[str, object]] = ()) -> None:
        self._sizes = list(map(len, dictionaries))
        self._keys = list(chain.from_iterable(dictionaries))
        self._values: list[object] = list(chain.from_iterable(map(_values, dictionaries)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Entries)
            and self._sizes == other._sizes
            and self._keys == other._keys
            and all(map(is_, self._values, other._values))
        )
