"""TA218: `torch.load` without `map_location` restores tensors to the device from which they were saved."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import argument, spreads

KEYWORDS = ("load", ("cuda", "device", "set_device", "init_process_group", "Accelerator"))

_CHOOSES = frozenset(
    {
        "accelerate.Accelerator",
        "torch.cuda.set_device",
        "torch.device",
        "torch.distributed.init_process_group",
        "torch.set_default_device",
    }
)
_BUFFER = "io.BytesIO"


def check(module: FileFacts) -> Iterator[Suspicion]:
    loads = [call for call in module.calls_to("torch.load") if _is_bare(call)]
    if not loads or not _chooses_device(module):
        return
    for call in loads:
        source = argument(call, "f", 0)
        if source is None or _is_buffer(source, module):
            continue
        message = f"`{module.code(call.func)}` puts tensors on the device they were saved from, which may be missing: give it `map_location`"
        added = add_argument(call, 'map_location="cpu"')
        fix = ProposedFix("load to the CPU", (added,)) if added is not None else None
        yield Suspicion(call, message, fix=fix)


def _is_bare(call: cst.Call) -> bool:
    return not spreads(call) and argument(call, "map_location", 1) is None


def _chooses_device(module: FileFacts) -> bool:
    """Whether a file says on which device, or as which rank, it runs."""
    calls = module.tree.all(cst.Call)
    return any(called_name(call) == "cuda" or module.qualified(call.func) in _CHOOSES for call in calls)


def _is_buffer(source: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether what is loaded is a copy in memory."""
    made = module.kinds.origin(source)
    return isinstance(made, cst.Call) and module.qualified(made.func) == _BUFFER
