"""TA418: softmax without `dim` picks the dimension by a surprising rule, from the number of dimensions."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument, is_name

KEYWORDS = (("softmax", "softmin", "log_softmax", "Softmax", "Softmin", "LogSoftmax"),)

_SOFTMAX = regex(r"torch\.nn\.(?:(?P<function>functional\.(?:log_)?softm(?:ax|in))|(?:Log)?Softmax|Softmin)")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, found in module.calls_matching(_SOFTMAX):
        dim = argument(call, "dim", 1 if found["function"] else 0)
        if dim is None or is_name(dim, "None"):
            name = module.code(call.func)
            yield Suspicion(
                call,
                f"`{name}` without `dim` takes dimension 0 of 1- and 3-dimensional input, else 1: pass `dim`",
                is_note=not _surprises(module, call, is_call=bool(found["function"])),
            )


def _surprises(module: FileFacts, call: cst.Call, is_call: bool) -> bool:
    """Whether the input is known to have three dimensions, so that softmax runs over the first, the batch."""
    given = argument(call, "input", 0) if is_call else None
    shape = module.shapes.shape(given) if given is not None else None
    return shape is not None and len(shape) == 3
