"""TA418: softmax without `dim` chooses the dimension by the number of dimensions, by a rule that surprises."""

from collections.abc import Iterator

from ta_lint.core.lazy import regex
from ta_lint.facts import Module, Suspicion
from ta_lint.facts.patterns import SOME_ARGUMENTS
from ta_lint.syntax.tree import argument, is_name

# A call whose arguments neither name `dim` nor end with a number, and are no number, as a tensor's method may be given.
_NO_DIM = (
    rf"(?!\s*-?\d+\s*[,)])(?!{SOME_ARGUMENTS}(?:\bdim\b(?!\s*=\s*None)|,\s*(?:dim\s*=\s*)?-?\d+\s*[,)]))"
)
NEEDS = (
    r"oftmax\(|oftmin\(",
    (
        r"Softm(?:ax|in)\(\s*(?:dim\s*=\s*None\s*,?\s*)?\)",
        rf"softm(?<!self\.softm)(?<!torch\.softm)(?<!def softm)(?<!\wsoftm)(?:ax|in)\({_NO_DIM}",
        rf"log_softm(?<!self\.log_softm)(?<!torch\.log_softm)(?<!def log_softm)(?<!\wlog_softm)(?:ax|in)\({_NO_DIM}",
    ),
)

_SOFTMAX = regex(r"torch\.nn\.(?:(?P<function>functional\.(?:log_)?softm(?:ax|in))|(?:Log)?Softmax|Softmin)")


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call, found in module.calls_matching(_SOFTMAX):
        dim = argument(call, "dim", 1 if found["function"] else 0)
        if dim is None or is_name(dim, "None"):
            name = module.code(call.func)
            yield Suspicion(
                call, f"`{name}` without `dim` takes dimension 0 of 1- and 3-dimensional input, else 1"
            )
