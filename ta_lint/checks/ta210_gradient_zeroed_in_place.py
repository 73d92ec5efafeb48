"""TA210: `zero_grad(set_to_none=False)` fills every gradient with zeros instead of dropping it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, remove_argument
from ta_lint.syntax.tree import is_name

KEYWORDS = ("set_to_none", "zero_grad")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.targets_before(2, 0) or _reads_gradients(module):
        return  # zeros are the default there; or the gradients may have to exist
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "zero_grad":
            continue
        for arg in call.args:
            if _keeps_tensors(arg):
                message = f"`{module.code(call)}` writes zeros to every gradient: `set_to_none=True` saves the time and memory"
                fix = ProposedFix("leave it at the default", (remove_argument(call, arg),))
                yield Suspicion(call, message, fix=fix)


def _keeps_tensors(arg: cst.Arg) -> bool:
    named = arg.keyword is not None and arg.keyword.value == "set_to_none"
    return named and is_name(arg.value, "False")


def _reads_gradients(module: FileFacts) -> bool:
    """Whether this file works on gradients itself, and may need them to exist."""
    return any(attribute.attr.value == "grad" for attribute in module.tree.all(cst.Attribute))
