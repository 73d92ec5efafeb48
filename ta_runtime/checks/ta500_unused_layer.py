"""TA500: a layer that never runs in training, and whose parameters never get a gradient."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Model, Run, Step, Suspicion
from ta_runtime.history import History

STEPS = 10
"""Steps of the optimizer without a gradient, at the end of the run: a block that is left out half of the time is then
never run with probability 0.001."""
CHOSEN_STEPS = 100
"""The same for one of a list of modules, such as an expert, of which the others run."""
EARLY_STEPS = 1000
"""Steps after which the end is not waited for. Parts that join later, as in progressive growing, join at latest then."""


def check_step(step: Step) -> Iterator[Suspicion]:
    usages = step.history.usages.values()
    if any(usage.steps >= EARLY_STEPS and not usage.parameters <= usage.used for usage in usages):
        models = {id(forward.model.module): forward.model for forward in step.training_forwards}
        for model in models.values():
            yield from _unused(model, step.history, EARLY_STEPS)


def check_run(run: Run) -> Iterator[Suspicion]:
    for model in run.models:
        yield from _unused(model, run.history, STEPS)


def _unused(model: Model, history: History, least: int) -> Iterator[Suspicion]:
    """The topmost modules, each with all it holds, that nothing of this model's training reached."""
    if id(model.module) not in history.called:
        return
    steps = _steps_without_gradient(history)
    stack: list[tuple[str, nn.Module, bool]] = [("", model.module, False)]
    while stack:
        name, module, is_chosen = stack.pop()
        without = [
            steps.get(id(parameter), 0) for parameter in module.parameters() if parameter.requires_grad
        ]
        ran = any(id(part) in history.called for part in module.modules())
        if without and not ran and min(without) >= max(least, CHOSEN_STEPS if is_chosen else 0):
            layer = model.names.layer(model.module, name, module)
            message = f"{layer} never runs in training, and its parameters get no gradient"
            yield Suspicion(layer.place, message, {"steps": min(without)}, layer.name)
            continue
        listed = isinstance(module, (nn.ModuleList, nn.ModuleDict)) and ran
        children = module.named_children()
        stack += [(f"{name}.{key}" if name else key, child, is_chosen or listed) for key, child in children]


def _steps_without_gradient(history: History) -> dict[int, int]:
    """Of each parameter that an optimizer holds and that never had a gradient, the steps that were looked at."""
    used = set().union(*(usage.used for usage in history.usages.values()))
    return {
        parameter: usage.steps
        for usage in history.usages.values()
        for parameter in usage.parameters
        if parameter not in used
    }
