"""TA657: a trainer's `compute_loss` does not accept `num_items_in_batch`, which every step passes."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_after

KEYWORDS = ("compute_loss", "*Trainer*")

_NEW = "num_items_in_batch"
# What releases that give it do not have: a program that imports it runs on an older one, or on a fork.
_GONE = ("transformers.utils.bitsandbytes", "LLaMAForCausalLM", "LLaMATokenizer")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if "transformers" in module.old_frameworks or module.targets_before(2, 0):
        return
    if module.is_nearby(*_GONE):
        return
    for klass, method in module.trainers.losses:
        if not method.decorators and not _takes(method.params) and not module.fallbacks.around(klass):
            message = "the `Trainer` passes `num_items_in_batch`, which this method does not take: add it"
            yield Suspicion(method, message, fix=_fix(method.params))


def _takes(params: cst.Parameters) -> bool:
    """Whether a function takes the number of items, by its name or among any others."""
    named = (*params.posonly_params, *params.params, *params.kwonly_params)
    return params.star_kwarg is not None or any(param.name.value == _NEW for param in named)


def _fix(params: cst.Parameters) -> ProposedFix | None:
    """The parameter behind the last one, where that has no star."""
    if not params.params or not isinstance(params.star_arg, (cst.MaybeSentinel, type(None))):
        return None
    last = params.params[-1]
    annotation = last.annotation.annotation if last.annotation is not None else None
    edit = insert_after(last.default or annotation or last.name, f", {_NEW}=None")
    return ProposedFix("take it", (edit,))
