"""TA501: one batch norm follows two different layers in one pass of its module."""

from collections import defaultdict
from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Forward, LayerCall, Step, Suspicion

OF_STRUCTURE = True
_NORMS = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
)


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.training_forwards:
        by_module: dict[int, list[LayerCall]] = defaultdict(list)
        for call in forward.calls:
            module = call.module
            if call.training and isinstance(module, _NORMS) and module.track_running_stats:
                by_module[id(call.module)].append(call)
        for calls in by_module.values():
            if len(calls) < 2 or len(_sources(forward, calls)) < 2:
                continue
            layer = calls[0].layer
            if len(calls) > _passes(forward, calls[0].module):
                message = (
                    f"{layer} is called after several layers and mixes their statistics: build one for each"
                )
                yield Suspicion(layer.place, message, {"calls": len(calls)}, layer.name)


def _sources(forward: Forward, calls: list[LayerCall]) -> set[int]:
    """The modules, by id, whose outputs these calls read directly; other origins are not known."""
    read = {id(call.inputs[0]) for call in calls if call.inputs}
    own = {id(calls[0].module)}
    leaves = (call for call in forward.calls if not call.module._modules)
    return {id(call.module) for call in leaves for value in call.outputs if id(value) in read} - own


def _passes(forward: Forward, module: nn.Module) -> int:
    """How often the nearest module around this one ran: twice for the encoder of a siamese network."""
    root = forward.model.module
    names = dict(root.named_modules())
    path = next((name for name, candidate in names.items() if candidate is module), "")
    while path:
        path = path.rpartition(".")[0]
        if runs := sum(call.module is names[path] for call in forward.calls):
            return runs
    return 1
