"""One snapshot: what a step has of settings, random states, batches, tensors of models and states of optimizers."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ta_runtime.faults import keep
from ta_runtime.naming import Names, held, stripped
from ta_runtime.snapshot import environment
from ta_runtime.snapshot.batches import Batches
from ta_runtime.snapshot.records import Records

Optimizer = torch.optim.Optimizer


class Snapshot:
    """Fills the records of one step. Each method takes what it is given as it is now."""

    def __init__(self, records: Records, names: Names) -> None:
        self.records = records
        self._names = names
        self._paths: dict[int, str] = {}  # of modules, by id
        self._taken: dict[int, list[str]] = {}  # names of parameters and buffers that are recorded, by id
        self._unnamed: dict[int, str] = {}  # of parameters whose model is not known yet: their places, by id
        self._prepared = False
        self.batches = Batches(records)
        self.began = False
        """Whether anything of the step ran: a forward or backward pass, or an optimizer."""

    def trains(self) -> None:
        """A forward or backward pass of the training begins."""
        self.began = True
        self.batches.trained()

    def rows(self) -> list[dict[str, Any]]:
        """All records, now that the step is over."""
        self.batches.over()
        return self.records.rows()

    def settings(self, changed: Callable[[], Iterator[tuple[str, str]]]) -> None:
        """The random states and flags with which the step begins, once; `changed` gives variables that are others now."""
        if self._prepared:
            return
        self._prepared = True
        self.records.texts("environment", changed)
        self.records.texts("configuration", environment.settings)
        if self.records.wants("rng"):
            for name, state in environment.random_states():
                self.records.state("rng", name, state)

    def model(self, model: nn.Module, *, describe: bool) -> None:
        """The parameters and buffers of a model, and how its layers are set; a tensor of several names once."""
        if id(model) in self._paths:  # a further micro-batch
            return
        self._names.add(model)
        names = self._names.of_modules(model)
        self._paths |= names
        root = names[id(model)]
        apart = [names[id(module)] for module in model.modules() if module.training != model.training]
        mode = f"{model.training}, not in {', '.join(apart)}" if apart else str(model.training)
        self.records.text("configuration", f"module.{root}.training", mode)
        if describe:
            for module in model.modules():
                self.records.text("configuration", f"module.{names[id(module)]}", _described(module))
        prefix = self._names.prefix(model)
        for name, parameter in held(model, nn.Module.named_parameters, remove_duplicate=False):
            self._named_now(parameter, prefix + stripped(model, name))
            self._once("parameter", prefix + stripped(model, name), parameter)
        for name, buffer in held(model, nn.Module.named_buffers, remove_duplicate=False):
            self._once("buffer", prefix + stripped(model, name), buffer)

    def output(self, module: nn.Module, result: Any) -> None:
        """What a module returned; of several tensors each as `module:path`."""
        if self.records.wants("activation"):
            name = self._paths.get(id(module), type(module).__name__)
            self.records.values("activation", result, name, ":")

    def optimizer(self, optimizer: Optimizer, *, gradients: bool = True, state: bool = True) -> None:
        """What an optimizer is about to use: hyperparameters, parameters that no model showed, gradients, its state."""
        self.began = True
        kind = type(optimizer).__name__
        self.records.text("configuration", "optimizer", kind)
        self.records.text("optimizer", "(class)", kind)
        defaults = partial(environment.hyperparameters, optimizer.defaults)
        self.records.texts("configuration", defaults, f"{kind}.defaults.")
        for number, group in enumerate(optimizer.param_groups):
            prefix = f"{kind}.group{number}."
            self.records.texts("configuration", partial(environment.hyperparameters, group), prefix)
        parameters = list(self._named(optimizer))
        for name, parameter in parameters:
            if id(parameter) not in self._taken:
                self._once("parameter", name, parameter)
        if gradients:
            self._gradients(optimizer, parameters)
        if state:
            self._state(optimizer, parameters)

    def gradients(self, optimizer: Optimizer) -> None:
        self._gradients(optimizer, list(self._named(optimizer)))

    def _gradients(self, optimizer: Optimizer, parameters: list[tuple[str, Tensor]]) -> None:
        for name, parameter in parameters:
            if parameter.grad is not None:
                self.records.tensor("gradient", name, parameter.grad)
            else:
                self.records.text("gradient", name, "none" if parameter.requires_grad else "none: frozen")
        for name in ("grad_scale", "found_inf"):  # a fused optimizer divides by the scale itself
            if isinstance(value := getattr(optimizer, name, None), Tensor):
                self.records.tensor("gradient", f"({name})", value)

    def _state(self, optimizer: Optimizer, parameters: list[tuple[str, Tensor]]) -> None:
        for name, parameter in parameters:
            state = optimizer.state.get(parameter)
            for key, value in state.items() if isinstance(state, Mapping) else ():
                if isinstance(value, Tensor):
                    self.records.tensor("optimizer", f"{name}.{key}", value)
                else:
                    self.records.text("optimizer", f"{name}.{key}", repr(value))

    def _named(self, optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
        names = self._names.of_parameters(one for group in optimizer.param_groups for one in group["params"])
        kind = type(optimizer).__name__
        for number, group in enumerate(optimizer.param_groups):
            for position, parameter in enumerate(group["params"]):
                name = names.get(id(parameter))
                if name is None:
                    name = self._unnamed[id(parameter)] = f"{kind}.group{number}.{position}"
                yield name, parameter

    def _named_now(self, parameter: Tensor, name: str) -> None:
        """The model of a parameter is known: an optimizer that is given a closure steps before the first forward pass."""
        if (place := self._unnamed.pop(id(parameter), None)) is not None:
            self.records.rename(("parameter", "gradient", "optimizer"), place, name)
            if id(parameter) in self._taken:
                self._taken[id(parameter)] = [name]

    def _once(self, kind: str, name: str, tensor: Tensor) -> None:
        known = self._taken.setdefault(id(tensor), [])
        if not known:
            self.records.tensor(kind, name, tensor)
        elif name not in known:
            self.records.text(kind, name, f"the same tensor as {known[0]}")
        known.append(name)


def _described(module: nn.Module) -> str:
    try:
        return f"{type(module).__name__}({' '.join(module.extra_repr().split())})"
    except Exception as error:  # noqa: BLE001 - the user's code
        keep(error)
        return type(module).__name__
