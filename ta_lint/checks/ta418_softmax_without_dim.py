"""TA418: softmax without `dim` picks the dimension by a surprising rule, from the number of dimensions."""

from collections.abc import Iterator

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument, is_name

KEYWORDS = (("softmax", "softmin", "log_softmax", "Softmax", "Softmin", "LogSoftmax"),)

_SOFTMAX = regex(r"torch\.nn\.(?:(?P<function>functional\.(?:log_)?softm(?:ax|in))|(?:Log)?Softmax|Softmin)")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call, found in module.calls_matching(_SOFTMAX):
        dim = argument(call, "dim", 1 if found["function"] else 0)
        if dim is None or is_name(dim, "None"):
            name = module.code(call.func)
            yield Suspicion(
                call,
                f"`{name}` without `dim` takes dimension 0 of 1- and 3-dimensional input, else 1: name `dim`",
            )
