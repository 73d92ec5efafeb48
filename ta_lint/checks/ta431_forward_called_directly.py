"""TA431: `module.forward(x)` does the same as `module(x)`, but skips the hooks."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, unwrap

KEYWORDS = ("forward",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "forward":
            continue
        receiver = call.func.value
        if module.kind(receiver) not in (Kind.MODULE, Kind.CRITERION) or _is_class(receiver, module):
            continue
        if not _has_own_call(receiver, module):
            message = f"`{module.code(call.func)}` skips hooks: call `{module.code(receiver)}()` itself"
            fix = ProposedFix("call the module", unwrap(call.func, receiver))
            yield Suspicion(call, message, fix=fix)


def _is_class(receiver: cst.BaseExpression, module: FileFacts) -> bool:
    """`nn.Linear.forward(self, x)`, or `super().forward(x)`."""
    return module.qualified(receiver) is not None or (
        isinstance(receiver, cst.Call) and module.qualified(receiver.func) == "builtins.super"
    )


def _has_own_call(receiver: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether calling the module does something other than its `forward`."""
    made = module.kinds.construction(receiver)
    klass = module.classes.local(made.func) if made is not None else None
    return klass is not None and module.classes.method(klass, "__call__") is not None
