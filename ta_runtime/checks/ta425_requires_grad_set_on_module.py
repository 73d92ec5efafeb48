"""TA425: a module's attribute `requires_grad` does not match its parameters."""

from collections.abc import Iterator

from ta_runtime.facts import Layer, Refutation, Said, Step, Suspicion
from ta_runtime.probes.places import Place
from ta_runtime.probes.sources import assigned_to, settings_of

OF_STRUCTURE = True


def check_step(step: Step) -> Iterator[Said]:
    for forward in step.training_forwards:
        if not any("requires_grad" in vars(module) for module in forward.model.module.modules()):
            continue
        for layer in forward.model.layers:
            flag = vars(layer.module).get("requires_grad")
            parameters = list(layer.module.parameters())
            if not isinstance(flag, bool) or not parameters:
                continue
            learning = sum(parameter.requires_grad for parameter in parameters)
            numbers = {"parameters": len(parameters), "require gradients": learning}
            places = _set_at(layer)
            if (learning and not flag) or (flag and not learning):
                message = f"`requires_grad = {flag}` on a module does not reach its parameters: use `requires_grad_()`"
                for place in places or [layer.place]:
                    yield Suspicion(place, message, numbers)
            else:
                for place in places:
                    because = f"{learning} of its {len(parameters)} parameters require gradients, as it says"
                    yield Refutation(place, because, numbers)


def _set_at(layer: Layer) -> list[Place]:
    """The lines that set it, by the name under which the layer was created, or by its name in the model."""
    path = layer.place.path
    owners = dict.fromkeys((assigned_to(layer.place), f"model.{layer.name}" if layer.name else ""))
    return [place for owner in owners if owner for place in settings_of("requires_grad", owner, path)]
