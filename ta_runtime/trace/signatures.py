"""What goes into a call and comes out of it, as the strings of an `Event`. Each is made once; nothing reads a value."""

import inspect
import json
import marshal
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ta_runtime.measure.tree import tensors
from ta_runtime.runs import masking

Result = tuple[str, str]
"""The dtypes and the shapes of results."""

_MANY = 64
_POSITIONS = tuple(map(str, range(_MANY)))
_PLAIN = {Tensor, nn.Parameter, nn.Buffer}
_SAID = {int, bool, str, type(None)}
_WORDS = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_LONGEST = 200  # characters of an argument: a text that goes into a tokenizer is no setting

_REMEMBERED = 1 << 14
_Key = TypeVar("_Key")
_Text = TypeVar("_Text")

NO_RESULT: Result = ("", "")


class Signatures:
    """The strings of the calls of a run, remembered by what they are made of."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[Any, ...], str] = {(): ""}
        self._results: dict[tuple[Any, ...], Result] = {(): NO_RESULT}
        self._arguments: dict[bytes, str] = {}
        self._names: dict[Callable[..., Any], Sequence[str]] = {}

    def names(self, function: Callable[..., Any], *, method: bool = False) -> Sequence[str]:
        """The names of the parameters of a function; positions where it has no names. A method's leave out its first."""
        names = self._names.get(function)
        if names is None:
            names = self._names[function] = _names(function, method)
        return names

    def given(
        self, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> tuple[str, str]:
        """`inputs` and `arguments` of a call."""
        found: list[Any] = []  # dtypes and shapes in turn
        said: list[Any] = []  # names and values in turn
        for position, value in enumerate(args):
            if type(value) in _PLAIN and not value.is_nested:
                found += (value.dtype, value.shape)
            elif value is not None:
                _sort(value, names[position] if position < len(names) else str(position), found, said)
        if kwargs:
            for name, value in kwargs.items():
                if type(value) in _PLAIN and not value.is_nested:
                    found += (value.dtype, value.shape)
                elif value is not None:
                    _sort(value, name, found, said)
        key = tuple(found)
        inputs = self._inputs.get(key)
        if inputs is None:
            inputs = _keep(self._inputs, key, _inputs(key))
        return inputs, self._said(said) if said else ""

    def result(self, value: Any) -> Result:
        """`dtype` and `shape` of a result."""
        if type(value) in _PLAIN and not value.is_nested:
            result = self._results.get((value.dtype, value.shape))
            if result is not None:
                return result
        return self.results(parts(value))

    def results(self, found: Sequence[Tensor]) -> Result:
        """Of the tensors in a result."""
        key = tuple([each for tensor in found for each in _outline(tensor)])
        result = self._results.get(key)
        if result is None:
            result = _keep(self._results, key, _result(key))
        return result

    def _said(self, said: list[Any]) -> str:
        try:
            key = marshal.dumps(said, 2)  # tells True from 1, and costs less than a hash of the values
        except ValueError:
            return ""
        text = self._arguments.get(key)
        if text is None:
            text = canonical(dict(zip(said[::2], said[1::2], strict=True)))
            _keep(self._arguments, key, text)
        return text


def _keep(texts: dict[_Key, _Text], key: _Key, text: _Text) -> _Text:
    """Remember a text, which mostly comes again; where each is a new one, such as a learning rate, begin anew."""
    if len(texts) >= _REMEMBERED:
        texts.clear()
    texts[key] = text
    return text


def parts(value: Any) -> Sequence[Tensor]:
    """The tensors of a result or batch, in the order of `tree.tensors`."""
    kind = type(value)
    if kind in _PLAIN:
        return (value,)
    if value is None or kind in _SAID or kind is float:
        return ()
    if (
        (kind is tuple or kind is list)
        and 0 < len(value) < _MANY
        and all(type(each) in _PLAIN for each in value)
    ):
        return value  # type: ignore[no-any-return]
    return [tensor for _, tensor in tensors(value)]


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks, secrets masked. What is no number in JSON is a string: `"inf"`."""
    return json.dumps(masking.nested(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _sort(value: Any, name: str, found: list[Any], said: list[Any]) -> None:
    """Into tensors and what JSON can say; the rest is left out, as is None, and what functions of torch keep to themselves."""
    if name[0] == "_":
        return
    kind = type(value)
    if kind in _SAID:
        if kind is not str or len(value) <= _LONGEST:
            said += (name, value)
    elif kind is float:
        said += (name, value if math.isfinite(value) else str(value))
    elif isinstance(value, Tensor):
        found += _outline(value)
    elif isinstance(value, _WORDS):
        said += (name, str(value).removeprefix("torch."))
    elif isinstance(value, (list, tuple, dict)) or hasattr(value, "__dataclass_fields__"):
        inside = [each for tensor in parts(value) for each in _outline(tensor)]
        if inside:
            found += inside
        elif (plain := _plain(value)) is not None:
            said += (name, plain)


def _plain(value: Any, depth: int = 2) -> Any:
    """A list of what JSON can say; None for anything else."""
    if type(value) in _SAID or type(value) is float:
        return value if type(value) is not float or math.isfinite(value) else str(value)
    if depth and isinstance(value, (list, tuple)) and len(value) <= len(_POSITIONS):
        items = [_plain(item, depth - 1) for item in value]
        if not any(item is None and value[index] is not None for index, item in enumerate(items)):
            return items
    return None


def _outline(tensor: Tensor) -> tuple[Any, ...]:
    if type(tensor) in _PLAIN and not tensor.is_nested:
        return tensor.dtype, tensor.shape
    with torch._C.DisableTorchFunctionSubclass():
        return (tensor.dtype, _shape(tensor))


def _shape(tensor: Tensor) -> Any:
    if tensor.is_nested:
        return (tensor.size(0), "*")
    return () if nn.parameter.is_lazy(tensor) else tensor.shape


def _inputs(key: tuple[Any, ...]) -> str:
    return "; ".join(
        f"{dtype_of(dtype)}[{lengths(shape)}]" for dtype, shape in zip(key[::2], key[1::2], strict=True)
    )


def _result(key: tuple[Any, ...]) -> Result:
    return "; ".join(map(dtype_of, key[::2])), "; ".join(map(lengths, key[1::2]))


def dtype_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def lengths(shape: Sequence[object]) -> str:
    """`32,10`; nothing for a scalar."""
    return ",".join(map(str, shape))


def _names(function: Callable[..., Any], method: bool) -> Sequence[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _POSITIONS
    named = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return named[1:] if method else named or _POSITIONS
