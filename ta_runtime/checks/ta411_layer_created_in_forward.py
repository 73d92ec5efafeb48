"""TA411: a layer that runs in a forward pass was built in the same pass, and again in the next one."""

from collections.abc import Iterator

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from ta_runtime.facts import Refutation, Said, Sight, Step, Suspicion
from ta_runtime.probes.places import Place
from ta_runtime.probes.registers import BUILT

PASSES = 2
"""Audited steps in a row in which a line builds a new layer. A lazy layer is built in one."""


def check_step(step: Step) -> Iterator[Said]:
    if not len(step.births):
        return
    made: dict[Place, list[nn.Module]] = {}
    kept: dict[Place, int] = {}
    for module in {id(call.module): call.module for f in step.training_forwards for call in f.calls}.values():
        place, born = BUILT.get(module), step.births.get(module)
        if place is None or born is None or not _has_state(module):
            continue
        if born == step.index:
            made.setdefault(place, []).append(module)
        else:
            kept[place] = born
    for place in kept.keys() - made.keys():
        step.history.streak(("TA411", place), False)
        because = f"the layer built at step {kept[place]} still runs at step {step.index}"
        yield Refutation(place, because, {"built at step": kept[place], "still runs at step": step.index})
    for place, modules in made.items():
        if step.history.streak(("TA411", place), True) >= PASSES:
            kind = type(modules[0])
            lost = "so what it learns is lost"
            if issubclass(kind, _DropoutNd):
                lost = "which drops values in evaluation too"
            parameters = sum(p.numel() for module in modules for p in module.parameters())
            message = f"each forward pass builds a new `{kind.__name__}`, {lost}: build it in `__init__`"
            evidence = {"built in this step": len(modules), "weights": parameters}
            yield Suspicion(place, message, evidence, hides=Sight.LAYERS)


def _has_state(module: nn.Module) -> bool:
    """Whether it has trainable parameters, or depends on the mode."""
    return isinstance(module, _DropoutNd) or any(p.requires_grad for p in module.parameters())
