"""TA204: a `DataLoader` without workers loads every batch while the training waits."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.tree import Node, argument, spreads

NEEDS = (r"\bDataLoader\b",)

_NUM_WORKERS = 5  # DataLoader(dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, ...)
_LITERALS = (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)
_CONTAINERS = frozenset({"builtins.list", "builtins.tuple", "builtins.dict", "builtins.range"})
_VIEWS = frozenset({"torch.utils.data.Subset", "torch.utils.data.random_split"})


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call in module.calls_to("torch.utils.data.DataLoader"):
        workers = argument(call, "num_workers", _NUM_WORKERS)
        dataset = argument(call, "dataset", 0)
        if spreads(call) or dataset is None or (workers is not None and module.number(workers) != 0):
            continue
        if not _costs_nothing(dataset, module):
            given = "without `num_workers`" if workers is None else "with `num_workers=0`"
            yield Suspicion(call, f"`DataLoader` {given} loads every batch in the training process")


def _costs_nothing(dataset: Node, module: Module) -> bool:
    """Whether the samples lie ready in memory, or on the device, which workers must not touch."""
    made: Node | None = module.kinds.origin(dataset)
    if isinstance(made, cst.Name) and (binding := module.names.definition(made)) and binding.how == "unpack":
        made = binding.value  # train, val = random_split(...)
    if isinstance(made, _LITERALS):
        return True
    if not isinstance(made, cst.Call):
        return False
    called = module.qualified(made.func)
    if called in _VIEWS and made.args:
        return _costs_nothing(made.args[0].value, module)
    if called is not None and (called in _CONTAINERS or _is_tensor_factory(called)):
        return True
    klass = module.classes.local(made.func)
    return klass is not None and _reads_memory_or_device(klass, module)


def _is_tensor_factory(called: str) -> bool:
    """`torch.utils.data.TensorDataset`, and a plain function of torch, such as `torch.randn`."""
    return called == "torch.utils.data.TensorDataset" or called.rpartition(".")[0] == "torch"


def _reads_memory_or_device(klass: cst.ClassDef, module: Module) -> bool:
    """Whether `__getitem__` of a class calls nothing, or moves what it returns to a device."""
    getitem = module.classes.method(klass, "__getitem__")
    if getitem is None:
        return False
    calls = module.tree.within(getitem.body, cst.Call)
    return not calls or any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value in ("cuda", "to") for call in calls
    )
