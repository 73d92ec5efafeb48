"""TA418: softmax without `dim` chooses the dimension by the number of dimensions, by a rule that surprises."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.patterns import SOME_ARGUMENTS
from ta_lint.facts.tree import Node, argument, spreads

# A call whose arguments neither name `dim` nor end with a number.
NEEDS = (
    r"oftm(?:ax|in)\(",
    (
        r"\b(?:Log)?Softm(?:ax|in)\(\s*(?:dim\s*=\s*None\s*,?\s*)?\)|"
        r"(?<!self\.)(?<!torch\.)(?<!def )\b(?:log_)?softm(?:ax|in)\("
        rf"(?!{SOME_ARGUMENTS}(?:\bdim\b(?!\s*=\s*None)|,\s*(?:dim\s*=\s*)?-?\d+\s*[,)]))"
    ),
)

_FUNCTION = re.compile(r"torch\.nn\.functional\.((?:log_)?softm(?:ax|in))")
_LAYER = re.compile(r"torch\.nn\.((?:Log)?Softmax|Softmin)")


def check(module: Module) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        called = module.qualified(call.func) or ""
        function, layer = _FUNCTION.fullmatch(called), _LAYER.fullmatch(called)
        if (function is None and layer is None) or spreads(call):
            continue
        if _is_missing(argument(call, "dim", 1 if function is not None else 0)):
            name = module.code(call.func)
            yield Suspicion(
                call, f"`{name}` without `dim` takes dimension 0 of 1- and 3-dimensional input, else 1"
            )


def _is_missing(dim: Node | None) -> bool:
    return dim is None or (isinstance(dim, cst.Name) and dim.value == "None")
