"""What modules are called in a trace: by their paths in the models that were seen, the same with and without a wrapper."""

import weakref
from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import nn

from ta_runtime.naming import Names, inside, stripped
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.trace import titles


class TracedLayer(NamedTuple):
    """A module, by its public class name and its path; of the outermost of the first model that is empty."""

    module: "weakref.ref[nn.Module]"
    name: str
    subject: str


class LayerNames:
    """Finds the names of modules, and remembers them by identity until a model has other parts."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known: dict[int, TracedLayer] = {}
        """By identity; one whose module is gone may stand there for another."""
        self._optimizers: Register[str] = Register()

    def of(self, module: nn.Module) -> TracedLayer:
        layer = self.known.get(id(module))
        return layer if layer is not None and layer.module() is module else self._meet(module)

    def subject(self, module: nn.Module) -> str:
        return self.of(module).subject

    def models(self) -> list[nn.Module]:
        """The models that hold parameters and were seen, outermost, without the wrappers that only call them."""
        found: dict[int, nn.Module] = {}
        for model in self.names.models:
            inner = inside(model)
            found.setdefault(id(inner), inner)
        return list(found.values())

    def find(self, parameters: Collection[int]) -> bool:
        """Take up the models that hold some of these parameters, by id; False if there are no more than were known."""
        known = len(self.names.models)
        for whole in self._wholes():
            if any(id(parameter) in parameters for parameter in whole.parameters()):
                self.names.add(whole)
        return len(self.names.models) > known

    def is_model(self, module: nn.Module) -> bool:
        """Whether it is a whole model that was seen, or its wrapper."""
        return any(inside(model) is inside(module) for model in self.names.models)

    def of_optimizer(self, optimizer: torch.optim.Optimizer | None) -> str:
        """Of several models that train at once, the one whose parameters an optimizer holds; empty for the first."""
        if optimizer is None:
            return ""
        subject = self._optimizers.get(optimizer)
        if subject is None:
            first = next((one for group in optimizer.param_groups for one in group["params"]), None)
            whole = next(
                (model for model in self._wholes() if any(one is first for one in model.parameters())), None
            )
            subject = "" if whole is None else self.prefix(whole).removesuffix(".")
            self._optimizers.add(optimizer, subject)
        return subject

    def prefix(self, model: nn.Module) -> str:
        """What stands before the names of a model's own: nothing for the first, `Discriminator.` for a later one."""
        return self.names.prefix(inside(model))

    def _meet(self, module: nn.Module) -> TracedLayer:
        for key in [key for key, layer in self.known.items() if layer.module() is None]:
            del self.known[key]
        whole = self._whole(module)
        if next(whole.parameters(), None) is None:  # a criterion, say: it takes no name from a model
            prefix = f"{type(whole).__name__}."
        else:
            self.names.add(whole)
            prefix = self.prefix(whole)
        for path, part in whole.named_modules():
            own = stripped(whole, path)
            subject = prefix + own if own else prefix.removesuffix(".")
            self.known[id(part)] = TracedLayer(weakref.ref(part), titles.of_class(type(part)), subject)
        return self.known[id(module)]

    def _whole(self, module: nn.Module) -> nn.Module:
        """The model that a module is a part of, as far as it was seen or built; itself, if it is of none."""
        holding = (model for model in self._wholes() if any(part is module for part in model.modules()))
        return next(holding, module)

    def _wholes(self) -> list[nn.Module]:
        """The models that were seen, and then those that were built, which are no part of another."""
        built = (one for one in BUILT.instances() if isinstance(one, nn.Module) and "_modules" in vars(one))
        known = {id(one): one for one in (*self.names.models, *built)}
        held = {id(part) for one in known.values() for part in one._modules.values()}
        return [one for key, one in known.items() if key not in held]
