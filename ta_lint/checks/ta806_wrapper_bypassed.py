"""TA806: `ddp.module(x)` in a training step bypasses the wrapper, which then reduces no gradients."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.wrappers import ParallelWrapper, WrapCall
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node

KEYWORDS = ("DistributedDataParallel", "*backward", "module")

# Code that may reduce the gradients itself.
_REDUCES = regex(
    r"all_?reduce\w*\([^\n]*grad|(average|all_?reduce|reduce|sync|synchronize)_grad", re.IGNORECASE
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _REDUCES.search(module.source.text):
        return
    calls = [(call, found) for call in module.tree.all(cst.Call) if (found := _bypassed(call, module))]
    losses = module.gradients.losses if calls else []
    trained = {node for loss in losses for node in (loss.call, *module.gradients.path(loss))}
    for call, (model, wrapping) in calls:
        if _leads_on(call, trained, module) and module.recording.records(call) is not False:
            written = module.code(model)
            yield Suspicion(
                call.func,
                f"`{module.code(call.func)}` reduces no gradients: call the `DistributedDataParallel` model",
                related=((wrapping.call, "the model is wrapped here"),),
                fix=ProposedFix(f"call `{written}`", (replace(call.func, module.verbatim(model)),)),
            )


def _leads_on(call: cst.Call, trained: set[Node], module: FileFacts) -> bool:
    """Whether a gradient can flow back to a call through the rest of its statement, without a `detach`."""
    above = (
        node for node in module.tree.ancestors(call) if isinstance(node, (cst.Call, cst.BinaryOperation))
    )
    statement = module.tree.statement(call)
    return all(node in trained for node in (call, *above) if module.tree.contains(statement, node))


def _bypassed(call: cst.Call, module: FileFacts) -> tuple[cst.BaseExpression, WrapCall] | None:
    """The wrapped model whose inner module a call runs: `ddp` in `ddp.module(x)` and `ddp.module.forward(x)`."""
    inner = module.calls_in_loop.called(call)
    if not isinstance(inner, cst.Attribute) or inner.attr.value != "module":
        return None
    wrapping = module.wrappers.around(inner.value)
    return (inner.value, wrapping) if wrapping and wrapping.wrapper is ParallelWrapper.REPLICATED else None
