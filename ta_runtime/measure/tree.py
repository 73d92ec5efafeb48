"""The tensors inside whatever a batch, an argument or a result may be."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from torch import Tensor

_DEPTH = 6
_COUNT = 64


def tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Each tensor with its path, such as `input_ids` or `0.mask`, depth first; at most 64, at most 6 levels deep.

    Goes into mappings (also `BatchEncoding` and `ModelOutput`), lists, tuples, dataclasses and packed sequences;
    iterators are left alone, as reading one would take its values from the run.
    """
    yield from islice(_walk(value, name, _DEPTH), _COUNT)


def _walk(value: Any, name: str, depth: int) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name or "tensor", value
    elif depth == 0 or isinstance(value, (str, bytes, int, float)) or value is None:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, _joined(name, str(key)), depth - 1)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):  # named tuples, packed sequences
        for key in value._fields:
            yield from _walk(getattr(value, key), _joined(name, key), depth - 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value[:_COUNT]):
            yield from _walk(item, _joined(name, str(index)), depth - 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for entry in fields(value):
            yield from _walk(getattr(value, entry.name, None), _joined(name, entry.name), depth - 1)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
