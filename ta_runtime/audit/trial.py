"""A forward pass on trial: what a model makes of a batch, after which everything is as it was."""

import inspect
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.func import functional_call
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from ta_lint.core.errors import oneline
from ta_runtime.audit.session import Session
from ta_runtime.facts import Step
from ta_runtime.facts.history import History
from ta_runtime.faults import keep
from ta_runtime.measure.tree import tensors
from ta_runtime.observers.values import measure_value
from ta_runtime.probes.compile import compiled_modules
from ta_runtime.probes.places import Place
from ta_runtime.settings import Settings

_COPIED = (list, dict, set)


class Trial:
    """The facts of a step in which a model was called with a batch, and nothing else was done.

    `step` has a history of its own. `complaint` says why there was no call, or what it raised, as the end of a sentence.
    """

    def __init__(self, settings: Settings, model: nn.Module, batch: Any, place: Place) -> None:
        watched = replace(settings, rules=frozenset(), record=None, snapshots=None, invariants=())
        session = Session(watched, optimizers=[])
        window = session.window
        window.step = self.step = Step(
            window.index, place, session.machine, complete=False, history=History()
        )
        self.complaint = unsuited(model := inner(model))
        if self.complaint is not None:
            return
        session.barrier.on = True
        session.forwards.attach()
        try:
            with as_it_was(model), torch.enable_grad():
                result = _called(model, batch)
                for forward in self.step.forwards[-1:]:
                    for value, (_, tensor) in zip(forward.outputs, tensors(result), strict=True):
                        measure_value(window, value, tensor.detach(), moments=False)
        except Exception as error:  # noqa: BLE001 - the batch's, or the model's: no training has begun
            keep(error)
            self.complaint = f"it raised `{type(error).__name__}`: {oneline(error)}"
        finally:
            session.forwards.detach()
            session.barrier.on = False
        window.readings.send()
        window.readings.deliver()


def inner(model: nn.Module) -> nn.Module:
    """The model inside what shares it among devices or compiles it."""
    wrappers = (DistributedDataParallel, DataParallel, *filter(None, [compiled_modules()]))
    while isinstance(model, wrappers):
        model = model._modules["_orig_mod" if "_orig_mod" in model._modules else "module"]  # type: ignore[assignment]
    return model


def unsuited(model: nn.Module) -> str | None:
    """Why a call of a model would leave traces, None if it need not."""
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            return "TorchScript keeps its state to itself"
        for tensor in (*module._parameters.values(), *module._buffers.values()):
            if tensor is not None and is_lazy(tensor):
                return "a lazy layer is made by its first call"
            if isinstance(tensor, DTensor) or type(module).__name__ == "FullyShardedDataParallel":
                return "it is spread over ranks, which all have to call it"
    return None


def _called(model: nn.Module, batch: Any) -> Any:
    args, kwargs = pytree.tree_map_only(Tensor, torch.clone, _arguments(model, batch))
    own = {
        name: tensor.detach().clone().requires_grad_(tensor.requires_grad)
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
    }
    return functional_call(model, own, args, kwargs)


def batches(model: nn.Module, batch: Any) -> list[Any]:
    """The batches in what a user hands over: each value of a mapping whose names `forward` does not know is one."""
    if not isinstance(batch, Mapping) or unsuited(model) is not None:
        return [batch]
    parameters = inspect.signature(model.forward).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    several = len(_needed(parameters)) == 1
    if several and inspect.Parameter.VAR_KEYWORD not in kinds and parameters.keys().isdisjoint(batch):
        return list(batch.values())
    return [batch]


def _needed(parameters: Mapping[str, inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters that a call has to give, by position."""
    return [each for each in parameters.values() if each.default is each.empty and each.kind in _POSITIONAL]


def _arguments(model: nn.Module, batch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A mapping goes to the parameters of `forward` by their names; of a sequence, what `forward` needs: targets stand last."""
    parameters = inspect.signature(model.forward).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if isinstance(batch, Mapping):
        takes_all = inspect.Parameter.VAR_KEYWORD in kinds
        named = {name: value for name, value in batch.items() if takes_all or name in parameters}
        if named:
            return (), named
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        return tuple(batch[: max(len(_needed(parameters)), 1)]), {}
    return (batch,), {}


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@contextmanager
def as_it_was(model: nn.Module) -> Iterator[None]:
    """Afterwards the attributes of a model and its modules are those before, and so are the global random generators.

    Tensors and containers among the attributes are copies meanwhile. Parameters and buffers are the caller's affair.
    """
    modules = list(model.modules())
    attributes = [dict(vars(module)) for module in modules]
    with ExitStack() as after:
        after.enter_context(_generators_as_they_were())
        after.enter_context(_eagerly())
        after.callback(_restore, modules, attributes)
        for module in modules:
            vars(module).update({name: _copied(value) for name, value in vars(module).items()})
        yield


def _restore(modules: list[nn.Module], attributes: list[dict[str, Any]]) -> None:
    for module, own in zip(modules, attributes, strict=True):
        vars(module).clear()
        vars(module).update(own)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor) and type(value) is Tensor:
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, torch.Generator):
        return value.clone_state()
    return value.copy() if type(value) in _COPIED else value


@contextmanager
def _generators_as_they_were() -> Iterator[None]:
    numpy = sys.modules.get("numpy.random")
    states = random.getstate(), numpy.get_state(legacy=False) if numpy is not None else None
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            if numpy is not None:
                numpy.set_state(states[1])


def _eagerly() -> AbstractContextManager[None]:
    """What is compiled inside the model runs as it is written: a hook would be compiled into it."""
    if compiled_modules() is None:
        return nullcontext()
    eagerly: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return eagerly
