"""Which functions are statistics that we know, so that they can be taken in bulk and put together exactly.

A function is known by what it is: one of torch, or code without closure and defaults whose instructions, constants and
names are those of a template, such as `lambda x: x.std()`. It is never called to find out.
"""

from collections.abc import Callable
from itertools import product
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from ta_runtime.monitor import statistics
from ta_runtime.monitor.statistics import Statistic

_EXPRESSIONS = {
    "mean": ("{}.mean()", "torch.mean({})"),
    "std": ("{}.std()", "torch.std({})"),
    "var": ("{}.var()", "torch.var({})"),
    "norm": ("{}.norm()", "torch.norm({})", "torch.linalg.vector_norm({})", "{}.norm(2)", "{}.norm(p=2)"),
    "max": ("{}.max()", "torch.max({})", "{}.amax()"),
    "min": ("{}.min()", "torch.min({})", "{}.amin()"),
    "abs_mean": ("{}.abs().mean()", "torch.mean(torch.abs({}))", "torch.abs({}).mean()"),
    "abs_max": ("{}.abs().max()", "torch.max(torch.abs({}))", "torch.abs({}).max()"),
    "rms": (
        "{}.pow(2).mean().sqrt()",
        "({} ** 2).mean().sqrt()",
        "{}.square().mean().sqrt()",
        "torch.sqrt(torch.mean({} ** 2))",
    ),
}
_TENSORS = ("x", "x.detach()", "x.float()", "x.detach().float()", "x.float().detach()")
_DIFFERENCES = ("(x - y)", "(x.detach() - y.detach())", "(x.float() - y.float())")
_ENDINGS = ("", ".item()")

_FUNCTIONS: dict[Any, Statistic] = {
    torch.mean: statistics.mean,
    Tensor.mean: statistics.mean,
    torch.std: statistics.std,
    Tensor.std: statistics.std,
    torch.var: statistics.var,
    Tensor.var: statistics.var,
    torch.norm: statistics.norm,
    Tensor.norm: statistics.norm,
    torch.linalg.vector_norm: statistics.norm,
    torch.max: statistics.max,
    Tensor.max: statistics.max,
    torch.min: statistics.min,
    Tensor.min: statistics.min,
}

_Code = tuple[bytes, tuple[Any, ...], tuple[str, ...]]


def recognised(function: Callable[..., Any], tensors: int = 1) -> Statistic | None:
    """The statistic that a function of one tensor is, or a function of two is of their difference; None if unknown."""
    if isinstance(function, Statistic):
        return function
    try:
        if tensors == 1 and (known := _FUNCTIONS.get(function)) is not None:
            return known
    except TypeError:  # it cannot be hashed
        return None
    if not isinstance(function, FunctionType) or function.__closure__:
        return None
    if function.__defaults__ or function.__kwdefaults__:
        return None
    code = function.__code__
    if "torch" in code.co_names and function.__globals__.get("torch") is not torch:
        return None
    return _templates(tensors).get(_key(code, function.__doc__))


def _key(code: CodeType, doc: str | None = None) -> _Code:
    constants = tuple(
        None if doc is not None and constant == doc else constant for constant in code.co_consts
    )
    # arguments: by number, as no template takes any by keyword or a variable number
    shape = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags & 0x0C)
    return code.co_code, (*shape, *constants), code.co_names


_MADE: dict[int, dict[_Code, Statistic]] = {}


def _templates(tensors: int) -> dict[_Code, Statistic]:
    if tensors not in _MADE:
        given, what = ("x", _TENSORS) if tensors == 1 else ("x, y", _DIFFERENCES)
        sources = [
            (name, f"lambda {given}: {expression.format(tensor)}{ending}")
            for name, expressions in _EXPRESSIONS.items()
            for expression, tensor, ending in product(expressions, what, _ENDINGS)
        ]
        listed = ", ".join(source for _, source in sources)
        made = _MADE[tensors] = {}
        for imports in ("", "import torch\n"):  # what the same file imports is called by other code
            namespace: dict[str, Any] = {}
            exec(f"{imports}templates = [{listed}]", namespace)  # noqa: S102 - of the lines above alone
            for (name, _), template in zip(sources, namespace["templates"], strict=True):
                made[_key(template.__code__)] = statistics.named(name)
    return _MADE[tensors]
