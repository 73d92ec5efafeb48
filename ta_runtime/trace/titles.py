"""The public names of classes and functions, as users write them: `torch.nn.Linear`, `torch.nn.functional.relu`."""

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from torch.overrides import _get_overridable_functions

# What only asks a tensor what it is; and `backward`, which is an event of its own kind.
_QUERIES = {
    "size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "element_size", "data_ptr", "storage",
    "untyped_storage", "get_device", "type", "dense_dim", "sparse_dim", "dim_order", "has_names", "requires_grad_",
    "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "sym_size", "sym_numel", "sym_stride",
    "backward", "__len__", "__repr__", "__format__", "__hash__", "__dir__", "__contains__", "__get__", "__set__", "__delete__",
    "__reduce_ex__", "__setstate__", "__deepcopy__", "__dlpack__", "__dlpack_device__", "__iter__", "__array__",
}  # fmt: skip


_classes: dict[type, str] = {}


def of_class(kind: type) -> str:
    """A class by the shortest path in torch that leads to it; any other by its own module: `__main__.Net`."""
    name = _classes.get(kind)
    if name is None:
        name = _classes[kind] = _of_class(kind)
    return name


def _of_class(kind: type) -> str:
    name, module = kind.__qualname__, kind.__module__
    parts = module.split(".")
    if parts[0] == "torch":
        for count in range(1, len(parts)):
            path = ".".join(parts[:count])
            if getattr(sys.modules.get(path), name, None) is kind:
                return f"{path}.{name}"
    return f"{module}.{name}"


@cache
def names() -> dict[Callable[..., Any], str]:
    """Of the functions and methods of torch. To be asked before the run: torch sets filters for this, which resets warnings."""
    named: dict[Callable[..., Any], str] = _get_overridable_functions()[1]  # what `resolve_name` looks into
    return named


def of_function(function: Callable[..., Any]) -> str | None:
    """A function or method of torch; None where it has no public name, or only asks a tensor what it is."""
    name = names().get(inspect.unwrap(function))  # it may be wrapped by what else watches
    if not name or not name.startswith("torch."):
        return None
    last = name.rpartition(".")[2]
    is_private = any(part.startswith("_") and not part.endswith("__") for part in name.split("."))
    return None if is_private or last in _QUERIES or last.startswith("is_") else name
