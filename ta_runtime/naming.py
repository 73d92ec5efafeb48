"""The one name of each layer and parameter: its path in the model, without what wrappers put into it; and where it was made.

Nothing is remembered but weak references to models: names are looked up when a finding needs one, so that moved,
replaced, wrapped and unfrozen parameters are always named as they are now.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Protocol

from torch import Tensor, nn

from ta_runtime.faults import keep
from ta_runtime.probes.places import NOWHERE, Place
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.probes.sources import of_attribute, of_class

_INSIDE = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_forward_module", "_checkpoint_wrapped_module"})
"""The attributes in which `torch.compile`, FSDP, Lightning and checkpointing hold what they wrap."""
_PARALLEL = frozenset({"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"})
"""The wrappers that hold it as `module`, by name: the imports take 0.1 s."""


def wrapped(module: nn.Module) -> nn.Module | None:
    """What a wrapper wraps, of which it is no more than another call; None of any other module."""
    for name, inner in module._modules.items():
        if name in _INSIDE or (name == "module" and type(module).__name__ in _PARALLEL):
            return inner
    return None


def inside(module: nn.Module) -> nn.Module:
    """A module without what is wrapped around it."""
    while (inner := wrapped(module)) is not None:
        module = inner
    return module


def stripped(model: nn.Module, path: str) -> str:
    """The name of a module or a parameter of a model: its path, without the parts that wrappers put into it."""
    kept = []
    owner: nn.Module | None = model
    for part in path.split("."):
        if part not in _INSIDE and not (part == "module" and type(owner).__name__ in _PARALLEL):
            kept.append(part)
        # not `getattr`, by which a module of the script may do anything
        parts = (
            {} if owner is None else vars(owner).get("_modules", {})
        )  # one that TorchScript makes has none
        owner = parts[part] if part in parts else None  # noqa: SIM401 - those of TorchScript have no `get`
    return ".".join(kept)


def stripped_key(key: str) -> str:
    """The same of a key in a saved state, of which no model is at hand: a first `module` is that of a wrapper."""
    parts = key.split(".")
    first = next((number for number, part in enumerate(parts) if part not in _INSIDE), len(parts))
    if parts[first:][:1] == ["module"]:
        del parts[first]
    return ".".join(part for part in parts if part not in _INSIDE)


Held = Iterator[tuple[str, Tensor]]


def held(model: nn.Module, method: Callable[..., Held], **options: bool) -> Held:
    """The parameters or buffers of a model by the names that it gives them, or where its own code raises, `nn.Module`."""
    given: Held = iter(())
    try:
        given = iter(getattr(model, method.__name__)(**options))
        first = next(given, None)
    except Exception as error:  # noqa: BLE001 - it is the user's
        keep(error)
        given = method(model, **options)
        first = next(given, None)
    return chain(() if first is None else (first,), given)


@dataclass(frozen=True, slots=True)
class Layer:
    """A module by its path in the model (`encoder.0.fc`, empty for the model itself), and the line that made it."""

    name: str
    module: nn.Module
    place: Place

    def __str__(self) -> str:
        if self.name.isdecimal():  # of an `nn.Sequential`
            return f"layer `{self.name}`"
        return f"`{self.name}`" if self.name else "the model"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or buffer by its full name. `layer` holds it; None where no model that holds it was seen."""

    name: str
    tensor: Tensor
    layer: Layer | None
    place: Place


class Holder(Protocol):
    """What holds parameters in groups: the facts of an optimizer."""

    @property
    def place(self) -> Place: ...
    @property
    def groups(self) -> list[dict[str, Any]]: ...


class Names:
    """The names of what belongs to the models of a session."""

    def __init__(self) -> None:
        self._models: list[weakref.ref[nn.Module]] = []
        self._prefixes: Register[str] = Register()

    @property
    def models(self) -> list[nn.Module]:
        """The models that were seen and still live, the first seen first."""
        return [model for reference in self._models if (model := reference()) is not None]

    def add(self, model: nn.Module) -> bool:
        """Remember a model; False if it is known."""
        if any(model is known for known in self.models):
            return False
        self._models = [reference for reference in self._models if reference() is not None]
        self._models.append(weakref.ref(model))
        return True

    def layer_of(self, model: nn.Module, module: nn.Module) -> Layer:
        """The layer for a module of a model; for a stranger, its class name instead of a path."""
        for name, candidate in model.named_modules():
            if candidate is module:
                return self.layer(model, name, module)
        return Layer(type(module).__name__, module, self._place(model, "", module))

    def layer(self, model: nn.Module, name: str, module: nn.Module) -> Layer:
        return Layer(stripped(model, name), module, self._place(model, name, module))

    def parameter(self, tensor: Tensor, optimizer: Holder | None = None) -> Parameter:
        """A parameter or buffer by its tensor. Without a model that holds it, it is named by its place in the optimizer."""
        for model in self.models:
            for name, candidate in chain(
                held(model, nn.Module.named_parameters), held(model, nn.Module.named_buffers)
            ):
                if candidate is tensor:
                    return self.parameter_of(model, name, tensor)
        place = optimizer.place if optimizer is not None else NOWHERE
        if optimizer is not None:
            for number, group in enumerate(optimizer.groups):
                for position, candidate in enumerate(group["params"]):
                    if candidate is tensor:
                        return Parameter(f"parameter {position} of group {number}", tensor, None, place)
        return Parameter("a parameter", tensor, None, place)

    def holders(self) -> dict[int, list[tuple[str, nn.Module]]]:
        """Of every parameter, by its id, the names it goes by and the modules that hold it; several if it is tied."""
        found: dict[int, list[tuple[str, nn.Module]]] = {}
        for model in self.models:
            for path, module in model.named_modules():
                for name, tensor in module._parameters.items():
                    holders = found.setdefault(id(tensor), [])
                    if all(module is not known for _, known in holders):
                        holders.append((stripped(model, f"{path}.{name}".lstrip(".")), module))
        return found

    def parameter_of(self, model: nn.Module, name: str, tensor: Tensor) -> Parameter:
        """A parameter or buffer by the name that `named_parameters` gives it."""
        path, _, _ = name.rpartition(".")
        layer = self.layer(model, path, model.get_submodule(path))
        return Parameter(stripped(model, name), tensor, layer, layer.place)

    def of_parameters(self, wanted: Iterable[Tensor]) -> dict[int, str]:
        """Of these parameters, by id, names that no others have, as far as a model is known to hold them. See `of_modules`.

        Models that were built and have not been seen to run, as one that is compiled, come last. A model that holds none of
        these is not asked: its name need not be told from theirs.
        """
        ids = set(map(id, wanted))
        found: dict[int, str] = {}
        for model in (*self.models, *self._unseen()):
            paths = {id(parameter): name for name, parameter in held(model, nn.Module.named_parameters)}
            if not ids.isdisjoint(paths):
                prefix = self.prefix(model)
                for key in ids & paths.keys():
                    found.setdefault(key, prefix + stripped(model, paths[key]))
        return found

    def of_modules(self, model: nn.Module) -> dict[int, str]:
        """Of every module of a model, by its id, a name that no other has: its path, after the first model with the name of
        the model's class before it; that class for the model itself.
        """
        prefix, kind = self.prefix(model), type(model).__name__
        names = {id(module): prefix + stripped(model, path) for path, module in model.named_modules()}
        return {key: name.removesuffix(".") or kind for key, name in names.items()}

    def prefix(self, model: nn.Module) -> str:
        """What stands before the names of a model's own: nothing for the first, `Discriminator.` for a later one."""
        if (prefix := self._prefixes.get(model)) is not None:
            return prefix
        taken = {self._prefixes.get(other) for other in (*self.models, *self._unseen())}
        kind = type(model).__name__
        numbered = (f"{kind}{number}." for number in count(2))
        prefix = next(free for free in chain(("", f"{kind}."), numbered) if free not in taken)
        self._prefixes.add(model, prefix)
        return prefix

    def around(self, model: nn.Module) -> list[nn.Module]:
        """The models that have this one as a part and were never called themselves, as one of which only `training_step` is."""
        return [whole for whole in self._unseen() if any(part is model for part in whole.modules())]

    def _unseen(self) -> list[nn.Module]:
        """Models that were built while a session was on, are part of no other, and are not known."""
        modules = (instance for instance in BUILT.instances() if isinstance(instance, nn.Module))
        built = [module for module in modules if "_modules" in vars(module)]  # others are being built now
        known = set(map(id, self.models))
        known.update(id(part) for whole in (*built, *self.models) for part in whole._modules.values())
        return [
            module
            for module in built
            if id(module) not in known and next(held(module, nn.Module.named_parameters), None) is not None
        ]

    def _place(self, model: nn.Module, name: str, module: nn.Module) -> Place:
        """The line that made a module, else the one that assigns it, else that of the module around it, else the class."""
        if (place := BUILT.get(module)) is not None:
            return place
        path = name
        while path:
            path, _, attribute = path.rpartition(".")
            parent = model.get_submodule(path)
            if (place := of_attribute(type(parent), attribute)) is not None:
                return place
            if (place := BUILT.get(parent)) is not None:
                return place
        return of_class(type(module)) or of_class(type(model)) or NOWHERE
