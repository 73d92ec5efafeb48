"""TA806: `ddp.module(x)` in a training step bypasses the wrapper, which then reduces no gradients."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("*backward",)
AROUND = ("DistributedDataParallel",)


def check_run(run: Run) -> Iterator[Said]:
    for one in run.bypassed:
        message = f"`{one.code}` reduces no gradients: call the `DistributedDataParallel` model"
        yield Suspicion(one.place, message, related=((one.wrapped, "the model is wrapped here"),))


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """`ddp` for `ddp.module`, with or without `forward`."""
    import libcst as cst

    from ta_lint.syntax.edits import ProposedFix, replace

    node = module.call_at(call)
    inner = module.calls_in_loop.called(node) if node is not None else None
    if node is None or not isinstance(inner, cst.Attribute) or inner.attr.value != "module":
        return None
    written = module.code(inner.value)
    return ProposedFix(f"call `{written}`", (replace(node.func, module.verbatim(inner.value)),))
