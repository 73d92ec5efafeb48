"""TA500: a layer never runs in training, and its parameters never get a gradient."""

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from torch import nn

from ta_runtime.facts import Model, Run, Step, Suspicion
from ta_runtime.facts.history import History, Unrun
from ta_runtime.probes.places import Place

LEAST = 10
"""Steps of the optimizer without a gradient, at the end of the run: a block that is left out half of the time is then
never run with probability 0.001."""
CHOSEN_STEPS = 100
"""The same for one module of a list, such as an expert, if the others run."""
EARLY_STEPS = 1000
"""Steps after which the end is not waited for. Parts that join later, as in progressive growing, join at latest then."""


def check_step(step: Step) -> Iterator[Suspicion]:
    missing = _missing(step)
    if not missing:
        return
    history = step.history
    forwards = [forward for forward in step.training_forwards if forward.complete and forward.calls]
    ran = history.called.union(*({id(call.module) for call in forward.calls} for forward in forwards))
    models = {id(forward.model.module): forward.model for forward in forwards}
    if not missing <= {id(parameter.tensor) for model in models.values() for parameter in model.parameters}:
        wholes = [whole for model in models.values() for whole in model.wholes]
        models |= {id(whole.module): whole for whole in wholes}
    for key, model in models.items():
        history.unrun[key] = list(_unrun(model, ran, missing))
    yield from _unused(history, EARLY_STEPS)


def check_trial(step: Step) -> Iterator[Suspicion]:
    """Not one of a list: which of those runs may be drawn."""
    missing = _missing(step)
    for layer in (layer for layers in step.history.unrun.values() for layer in layers):
        if layer.parameters <= missing and not layer.is_chosen:
            message = f"{layer.name} did not run in this trial: call it in `forward`, or remove it"
            yield Suspicion(layer.place, message, {"parameters": len(layer.parameters)})


def check_run(run: Run) -> Iterator[Suspicion]:
    yield from _unused(run.history, LEAST)


def _missing(step: Step) -> set[int]:
    """The parameters, by id, that a step of their optimizer finds without a gradient."""
    return {
        id(tensor)
        for gradients in step.gradients
        for tensor, present in zip(gradients.tensors, gradients.present, strict=True)
        if not present
    }


def _unrun(model: Model, ran: AbstractSet[int], missing: AbstractSet[int]) -> Iterator[Unrun]:
    """The topmost modules, each with all it holds, that did not run and whose parameters have no gradient.

    Not the parts of a library's class: the user cannot remove the pooler of a BERT model that is not used.
    """
    own = {id(layer.module) for layer in model.own_layers}
    stack: list[tuple[str, nn.Module, bool]] = [("", model.module, False)]
    while stack:
        name, module, is_chosen = stack.pop()
        parts = frozenset(map(id, module.modules()))
        trainable = frozenset(id(parameter) for parameter in module.parameters() if parameter.requires_grad)
        if trainable and trainable <= missing and ran.isdisjoint(parts):
            layer = model.names.layer(model.module, name, module)
            yield Unrun(layer.place, str(layer), parts, trainable, is_chosen)
            continue
        if id(module) not in own or isinstance(module, nn.MultiheadAttention):
            continue  # attention never calls its `out_proj`
        listed = isinstance(module, (nn.ModuleList, nn.ModuleDict)) and not ran.isdisjoint(parts)
        children = module.named_children()
        stack += [(f"{name}.{key}" if name else key, child, is_chosen or listed) for key, child in children]


def _unused(history: History, least: int) -> Iterator[Suspicion]:
    steps = _steps_without_gradient(history)
    unused: dict[Place, list[Unrun]] = defaultdict(list)
    for layer in (layer for layers in history.unrun.values() for layer in layers):
        fewest = min(steps.get(parameter, 0) for parameter in layer.parameters)
        enough = max(least, CHOSEN_STEPS if layer.is_chosen else 0)
        if fewest >= enough and history.called.isdisjoint(layer.modules):
            unused[layer.place].append(layer)
    for place, layers in unused.items():  # one for the blocks that share a line
        first = layers[0]
        message = f"{first.name} never runs in training and never learns: call it in `forward`, or remove it"
        evidence = {"layers": len(layers), "steps": min(steps[tensor] for tensor in first.parameters)}
        yield Suspicion(place, message, evidence)


def _steps_without_gradient(history: History) -> dict[int, int]:
    """Of each parameter, by id, that an optimizer holds and that never had a gradient, the steps that were looked at."""
    used = set().union(*(usage.used for usage in history.usages.values()))
    return {
        parameter: usage.steps for usage in history.usages.values() for parameter in usage.parameters - used
    }
