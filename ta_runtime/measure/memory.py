"""Where the values of a tensor lie: nothing else asks for addresses, or reads what is there.

A tensor need not have memory: that of a subclass may be in another, and a storage can be emptied.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor, UntypedStorage, nn

_PLAIN = (Tensor, nn.Parameter, nn.Buffer)


class Undigestible(Exception):
    """A tensor without memory of its own to read; the text says which kind."""


def storage(tensor: Tensor) -> UntypedStorage | None:
    """What its values lie in; None if it has no memory. It runs no code of a subclass."""
    try:
        if type(tensor) in _PLAIN:
            found = tensor.untyped_storage()
        else:
            with torch._C.DisableTorchFunctionSubclass():
                found = tensor.untyped_storage()
        return found if found.data_ptr() else None
    except (RuntimeError, NotImplementedError, TypeError):  # it is sparse, fake, or of a function transform
        return None


def address(tensor: Tensor) -> int:
    """Where its first value lies; of a tensor without memory, a number below zero that no other has at that time."""
    held = storage(tensor)
    if held is None or not _is_inside(tensor, held):
        return -id(tensor)
    return _first(tensor, held)


def part(tensor: Tensor) -> tuple[int, int] | None:
    """The address of what it lies in, and where it begins there; None if it has no memory."""
    held = storage(tensor)
    return None if held is None else (held.data_ptr(), int(tensor.storage_offset()))


def memory(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the CPU, not copied: hold the tensor as long as them.

    Raises:
        Undigestible: there are none.
    """
    count = tensor.numel() * tensor.element_size()
    if not count:
        return memoryview(b"")
    held = storage(tensor)
    if (
        held is None
        or held.device.type != "cpu"
        or not _is_inside(tensor, held)
        or not tensor.is_contiguous()
    ):
        raise Undigestible(f"a `{type(tensor).__name__}` without memory of its own")
    room: Any = (ctypes.c_char * count).from_address(_first(tensor, held))
    return memoryview(room).cast("B")


def _first(tensor: Tensor, held: UntypedStorage) -> int:
    return held.data_ptr() + int(tensor.storage_offset()) * tensor.element_size()


def _is_inside(tensor: Tensor, held: UntypedStorage) -> bool:
    """Whether the storage is as large as the tensor needs it: it may have been resized."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (tensor.storage_offset() + last + 1) * tensor.element_size() <= held.nbytes()
