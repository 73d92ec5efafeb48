"""TA204: a `DataLoader` without workers loads every batch while training waits."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.loaders import LoaderCall

KEYWORDS = ("DataLoader",)

_LITERALS = (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)
_CONTAINERS = frozenset({"builtins.list", "builtins.tuple", "builtins.dict", "builtins.range"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loader in module.loaders.all:
        workers = loader.given("num_workers")
        if loader.spreads or (workers is not None and module.number(workers) != 0):
            continue
        if _is_of_graphs(loader, module):
            continue
        if loader.given("dataset") is not None and not _costs_nothing(loader, module):
            given = "without `num_workers`" if workers is None else "with `num_workers=0`"
            yield Suspicion(
                loader.call, f"`DataLoader` {given} makes training wait for each batch: set `num_workers`"
            )


def _is_of_graphs(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a loader is that of PyTorch Geometric, whose data sets are mostly in memory."""
    return (module.qualified(loader.call.func) or "").startswith("torch_geometric.")


def _costs_nothing(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether the samples are already in memory, or on the device, which workers must not touch."""
    made = module.loaders.dataset(loader)
    if isinstance(made, _LITERALS):
        return True
    if not isinstance(made, cst.Call):
        return False
    called = module.qualified(made.func)
    if called is not None and (called in _CONTAINERS or _is_tensor_factory(called)):
        return True
    klass = module.classes.local(made.func)
    return klass is not None and _reads_memory_or_device(klass, module)


def _is_tensor_factory(called: str) -> bool:
    """`torch.utils.data.TensorDataset`, and a plain function of torch, such as `torch.randn`."""
    return called == "torch.utils.data.TensorDataset" or called.rpartition(".")[0] == "torch"


def _reads_memory_or_device(klass: cst.ClassDef, module: FileFacts) -> bool:
    """Whether the `__getitem__` of a class calls nothing, or moves its result to a device."""
    getitem = module.classes.method(klass, "__getitem__")
    if getitem is None:
        return False
    calls = module.tree.within(getitem.body, cst.Call)
    return not calls or any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value in ("cuda", "to") for call in calls
    )
