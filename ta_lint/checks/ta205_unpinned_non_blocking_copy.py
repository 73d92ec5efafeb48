"""TA205: `non_blocking=True` has no effect on a batch of a `DataLoader` without `pin_memory`."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument, evaluated

KEYWORDS = ("non_blocking",)
AROUND = ("DataLoader",)

# Devices that need no copy, or whose copies do not benefit from pinned memory.
_NO_CUDA = ("cpu", "mps", "meta", "xla")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loaders.replaced:
        return
    copies: dict[tuple[LoaderCall, ...], list[cst.Call]] = {}
    for call in module.tree.all(cst.Call):
        loaders = _loaders_of(call, module) if _copies_without_blocking(call, module) else ()
        if loaders and all(_is_unpinned(loader, module) for loader in loaders):
            copies.setdefault(loaders, []).append(call)
    for loaders, calls in copies.items():
        message = (
            "the copy of this batch blocks despite `non_blocking=True`: set `pin_memory=True` on the loader"
        )
        made = tuple((loader.call, "the loader is made here") for loader in loaders)
        others = tuple((call, "so does this copy") for call in calls[1:])
        yield Suspicion(calls[0], message, related=made + others, fix=_fix(loaders, module))


def _copies_without_blocking(call: cst.Call, module: FileFacts) -> bool:
    """`batch.to(device, non_blocking=True)`, or `.cuda(...)`, unless the target is certainly no CUDA device."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("to", "cuda"):
        return False
    flag = argument(call, "non_blocking")
    if flag is None or module.boolean(flag) is not True:
        return False
    device = argument(call, "device", 0) if call.func.attr.value == "to" else None
    return device is None or not _is_without_cuda(device, module)


def _is_without_cuda(device: Node, module: FileFacts) -> bool:
    origin = module.kinds.origin(device)
    if isinstance(origin, cst.Call) and module.qualified(origin.func) == "torch.device" and origin.args:
        origin = module.kinds.origin(origin.args[0].value)
    return isinstance(origin, cst.SimpleString) and str(evaluated(origin)).startswith(_NO_CUDA)


def _loaders_of(call: cst.Call, module: FileFacts) -> tuple[LoaderCall, ...]:
    """The loaders whose batch, or a part of it, is copied; empty if it may come from elsewhere."""
    node = call.func.value if isinstance(call.func, cst.Attribute) else call
    while isinstance(node, cst.Subscript):
        node = node.value  # batch["pixels"]
    found = module.loaders.pass_of(node) if isinstance(node, cst.Name) else None
    return found.loaders if found is not None else ()


def _is_unpinned(loader: LoaderCall, module: FileFacts) -> bool:
    pinned = loader.given("pin_memory")
    unpinned = pinned is None or module.boolean(pinned) is False
    if module.loaders.replaced_in(module.tree.root_of(loader.call)):
        return False
    return unpinned and not loader.spreads and not module.loaders.moves_to_device(loader)


def _fix(loaders: tuple[LoaderCall, ...], module: FileFacts) -> ProposedFix | None:
    if not all(module.is_here(loader.call) for loader in loaders):
        return None
    edits = []
    for loader in loaders:
        given = loader.given("pin_memory")
        edit = set_argument(loader.call, "pin_memory", "True", given)
        if edit is None or (given is not None and not isinstance(given, cst.Name)):
            return None
        edits.append(edit)
    return ProposedFix("pin the memory of the loader's batches", tuple(edits))
