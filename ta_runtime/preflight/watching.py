"""Notes the first step of a script as it is made: the batches, the calls of models, the losses and the backward pass."""

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ta_runtime.measure.tree import tensors
from ta_runtime.probes import hub
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.guard import FaultBarrier
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.modules import follow
from ta_runtime.probes.patching import Call, End, overridden
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import BUILT
from ta_runtime.probes.undo import Undo

_MOST = 8
"""Calls of models and losses that are kept: of more micro-batches, the first."""


@dataclass(slots=True)
class ModelCall:
    """An outermost call of a model by the training code, with what went in and came out."""

    module: nn.Module
    place: Place
    args: tuple[Any, ...]
    autocast: torch.dtype | None
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    raised: bool = True


@dataclass(slots=True)
class LossCall:
    """A call of a loss function that gradients flow from."""

    function: Callable[..., Any]
    place: Place
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None

    @property
    def name(self) -> str:
        return self.function.__name__

    def given(self, position: int, name: str, default: Any = None) -> Any:
        """An argument, by position or by name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


@dataclass(slots=True)
class KnownLoader:
    """A `DataLoader` that the script built or iterated before its first step."""

    loader: "weakref.ref[Any]"
    place: Place
    batch: Any = None
    """The last batch that it handed out."""
    batches: int = 0


class FirstStep(Listener):
    """What a script has done up to its first optimizer step; `reached` is called there, with the optimizer."""

    def __init__(self, barrier: FaultBarrier, reached: Callable[[torch.optim.Optimizer], object]) -> None:
        self.calls: list[ModelCall] = []
        self.losses: list[LossCall] = []
        self.stepped_on: list[Tensor] = []
        """What `backward` was called on."""
        self.loaders: list[KnownLoader] = []
        self.current: KnownLoader | None = None
        """The loader that handed out the last batch."""
        self.compiles = False
        self.began = time.perf_counter()
        self._barrier = barrier
        self._reached = reached
        self._iterators: dict[int, tuple[weakref.ref[Any], KnownLoader]] = {}
        self._open: list[ModelCall] = []
        self._following: Callable[[], None] | None = None
        self._undo = Undo()

    def attach(self) -> None:
        run = self._barrier.run
        self._undo.append(hub.subscribe(self, run, hub.REST | {"backward"}))
        self._undo.append(
            hub.watch("step", self._steps, hub.directly)
        )  # what it raises is to stop the script
        self._follow()

    def detach(self) -> None:
        self._undo()
        self._unfollow()

    def forget(self) -> None:
        """Let go of everything that it keeps alive."""
        self.calls, self.losses, self.stepped_on, self._open = [], [], [], []
        for known in self.loaders:
            known.batch = None

    # -- the step ---------------------------------------------------------------------------------------------

    def _steps(self, call: Call) -> None:
        if not self._barrier.listens:
            return
        optimizer = call.args[0]
        if getattr(
            call, "has_closure", False
        ):  # it runs forward and backward inside the step, before it changes anything
            call.follow_closure(partial(self._reached, optimizer))  # type: ignore[attr-defined]
        else:
            self._reached(optimizer)

    # -- loaders ----------------------------------------------------------------------------------------------

    def build_loader(self, call: Call) -> End:
        return self._was_built

    def _was_built(self, call: Call) -> None:
        if not call.raised:
            self._known(call.args[0])

    def _known(self, loader: Any) -> KnownLoader:
        for known in self.loaders:
            if known.loader() is loader:
                return known
        known = KnownLoader(weakref.ref(loader), BUILT.get(loader) or here())
        self.loaders.append(known)
        return known

    def epoch(self, call: Call) -> End:
        return self._began

    def _began(self, call: Call) -> None:
        if not call.raised:
            iterator = call.result
            self._iterators[id(iterator)] = weakref.ref(iterator), self._known(call.args[0])

    def batch(self, call: Call) -> End:
        return self._came

    def _came(self, call: Call) -> None:
        entry = self._iterators.get(id(call.args[0]))
        if call.raised or entry is None or entry[0]() is not call.args[0]:
            return
        self.current = known = entry[1]
        known.batch = call.result
        known.batches += 1

    # -- models -----------------------------------------------------------------------------------------------

    def compile(self, call: Call) -> None:
        self.compiles = True
        self._unfollow()  # what follows a call would be compiled into it

    def _follow(self) -> None:
        run = self._barrier.run
        self._following = follow(partial(run, self._enter), partial(run, self._leave))

    def _unfollow(self) -> None:
        if self._following is not None:
            self._following()
            self._following = None

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self._open:
            if self._open[-1].module is module:  # it calls itself
                self._open.append(self._open[-1])
            return
        if in_backward() or not torch.is_grad_enabled() or next(module.parameters(), None) is None:
            return
        self._open.append(ModelCall(module, here(), args, _autocast(module)))

    def _leave(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        if not self._open or self._open[-1].module is not module:
            return
        call = self._open.pop()
        if self._open:
            return
        call.raised = len(rest) == 1
        if not call.raised:
            call.kwargs, call.result = rest
        if len(self.calls) < _MOST:
            self.calls.append(call)

    def loss(self, call: Call) -> End | None:
        if overridden(call.args, call.kwargs) or not torch.is_grad_enabled() or in_backward():
            return None
        return self._lost

    def _lost(self, call: Call) -> None:
        tensors_in = call.given(0, "input"), call.given(1, "target")
        trains = isinstance(call.result, Tensor) and call.result.requires_grad
        if trains and all(isinstance(each, Tensor) for each in tensors_in) and len(self.losses) < _MOST:
            self.losses.append(LossCall(call.function, here(), call.args, call.kwargs, call.result))

    def backward(self, call: Call) -> None:
        loss = call.given(0, "tensors")
        if isinstance(loss, Tensor) and not in_backward() and len(self.stepped_on) < _MOST:
            self.stepped_on.append(loss.detach())

    # -- what of it trains ------------------------------------------------------------------------------------

    @property
    def training_call(self) -> ModelCall | None:
        """The only call of a model, which gradients flow from; None where there are several."""
        calls = [call for call in self.calls if any(t.requires_grad for _, t in tensors(call.result))]
        return calls[0] if len(calls) == 1 else None


def _autocast(module: nn.Module) -> torch.dtype | None:
    kind = next(module.parameters()).device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)
