"""Sees outermost forward passes that train nothing, while it is attached: their mode, and whether they record a graph."""

import weakref
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from ta_lint.events.inference import Inference
from ta_runtime.facts import Evaluated, Loader, Scores
from ta_runtime.measure.scalars import Readings
from ta_runtime.measure.tree import tensors
from ta_runtime.observers.losses import UntrackedLosses
from ta_runtime.observers.scores import measure
from ta_runtime.probes.backward import in_backward, on_backward
from ta_runtime.probes.modules import follow
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import Register
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_MOST = 256  # lines
_OUTPUTS = 8  # of one pass, that are followed to a backward pass
_SCORES = 4  # losses of a line whose input is measured


class Inferences:
    """Watches forward passes; `on_pass` is told of each: the module, whether it trains, and whether it records."""

    def __init__(self, session: "Context", on_pass: Callable[[nn.Module, bool, bool], None]) -> None:
        self._session = session
        self._on_pass = on_pass
        self._undo = Undo()
        self._root: nn.Module | None = None
        self._evaluations = UntrackedLosses(self._measured, session.barrier.run)
        self.alone = True
        """Whether it looks for the passes itself, while it is attached."""
        self._last: Inference | None = None  # the pass that a loss may be of
        self._batches: dict[Place, tuple[weakref.ref[Tensor] | None, int]] = {}
        self._loaders: dict[Place, list[Loader]] = {}
        """Those that handed out a batch last before the noisy passes of a line."""
        self.found: dict[tuple[Place, str], Inference] = {}
        self.evaluated: dict[Place, Evaluated] = {}
        self._readings = Readings()
        self.left = 0
        """How many passes are still to be looked at."""
        self.switched: Register[int] = Register()
        """After which optimizer step a module was last put into training mode."""
        self.backwards = 0
        self.loaded: Register[bool] = Register()
        """Modules that weights were loaded into."""
        self.settled: Register[bool] = Register()
        """Modules that were put into a mode."""
        self.recorded: dict[tuple[Place, str], Inference] = {}
        """Passes in training mode that record a graph, of models with weights that were loaded, while there is no optimizer."""
        self.trained: set[int] = set()
        """The ids of the parameters that an optimizer stepped."""

    @property
    def attached(self) -> bool:
        return bool(self._undo)

    def begin(self, passes: int) -> None:
        """Look at so many passes from now on, while it is attached."""
        self.left = passes
        self._root = self._last = None

    def attach(self, *, alone: bool) -> None:
        """`alone`, it looks for the passes itself; else it is told of them by `passed`."""
        self.alone = alone
        self._undo.append(self._evaluations.detach)
        self._evaluations.attach()
        if alone:
            self._hook()

    def _hook(self) -> None:
        before = self._session.guarded(self._before)
        after = self._session.guarded(self._after)
        is_compiling = torch.compiler.is_compiling

        def enter(module: nn.Module, args: tuple[Any, ...]) -> None:
            if self._root is None and self.left > 0 and not is_compiling():
                before(module)

        def leave(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
            if module is self._root and not is_compiling():
                after(module, args, rest[-1])

        self._undo.append(follow(enter, leave))

    def detach(self) -> None:
        self._undo()
        self._root = self._last = None

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if not self.alone and self.left > 0 and next(module.parameters(), None) is not None:
            self._after(module, args, result)

    def _before(self, module: nn.Module) -> None:
        if next(module.parameters(), None) is not None:
            self._root = module

    def _after(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        self._root = self._last = None
        if in_backward():
            return  # a recomputation
        self.left -= 1
        records = torch.is_grad_enabled()
        self._on_pass(module, module.training, records)
        found = self.found
        if module.training and records:
            if self.backwards or not self._session.infers or not self._is_loaded(module):
                return
            found = self.recorded
        place = here()
        key = (place, type(module).__qualname__)
        inference = found.get(key)
        if inference is None:
            if len(found) == _MOST:
                return
            inference = found[key] = Inference(place)
        inference.passes += 1
        if not (records and module.training) and (loader := self._session.loaders.current) is not None:
            loader.inferred += 1
        if records:
            self._follow(inference, module, args, result)
            if module.training:
                self._note_mode(inference, module, args)
        else:
            self._last = inference
            inference.unrecorded += 1
            if module.training:
                self._note_mode(inference, module, args)

    def _follow(self, inference: Inference, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        """Note whether a backward pass goes through the graph of an output, for an input or for a parameter that an optimizer has stepped."""
        given = islice(tensors(result), _OUTPUTS)
        nodes = [tensor.grad_fn for _, tensor in given if tensor.grad_fn is not None]
        if not nodes:
            return
        inference.graphs += 1
        model, of_input = weakref.ref(module), any(tensor.requires_grad for _, tensor in tensors(args))

        def note() -> None:
            own = model()
            inference.used += of_input or not self.trained or (own is not None and self._is_trained(own))

        on_backward(nodes, note)

    def _note_mode(self, inference: Inference, module: nn.Module, args: tuple[Any, ...]) -> None:
        depending = [layer for layer in module.modules() if layer.training and depends_on_mode(layer)]
        inference.unsettled += bool(depending)
        if module.training and not depending:
            inference.plain += 1
            inference.idle |= any(map(is_idle, module.modules()))
        inference.dropouts = sum(isinstance(layer, _DropoutNd) for layer in depending)
        inference.norms = sum(isinstance(layer, _NormBase) for layer in depending)
        batch = next((tensor for _, tensor in tensors(args)), None)
        known = self._batches.get(inference.place)
        self._batches[inference.place] = (weakref.ref(batch) if batch is not None else None, self.backwards)
        if batch is None or known is None or known[1] != self.backwards:
            return
        if known[0] is not None and known[0]() is batch:
            return  # the same batch again: several samples of one output
        steps = self._session.step_count
        inference.loaded += not steps and self._is_loaded(module)
        if not steps or self.switched.get(module) == steps:
            return
        if not self._is_trained(module):
            if not self._is_copy(module):
                return
            inference.copied = True
        inference.noisy += 1
        loader = self._session.loaders.current
        loaders = self._loaders.setdefault(inference.place, [])
        if loader is not None and all(loader is not other for other in loaders):
            loaders.append(loader)

    def _is_loaded(self, module: nn.Module) -> bool:
        """Whether it has weights that were loaded, and nothing has put it or a part of it into a mode."""
        parts = list(module.modules())
        return any(part in self.loaded for part in parts) and not any(part in self.settled for part in parts)

    def _is_trained(self, module: nn.Module) -> bool:
        return any(id(parameter) in self.trained for parameter in module.parameters())

    def _is_copy(self, module: nn.Module) -> bool:
        """Whether a trained model is of its class."""
        models = self._session.names.models
        return any(type(model) is type(module) and self._is_trained(model) for model in models)

    def _measured(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._last is not None:
            self._last.measured += 1
        given = args[0] if args else kwargs.get("input")
        if function != "cross_entropy" or type(given) is not Tensor or not given.dim():
            return
        place = here()
        evaluated = self.evaluated.get(place)
        if evaluated is None:
            if len(self.evaluated) == _MOST:
                return
            evaluated = self.evaluated[place] = Evaluated(place)
        if len(evaluated.scores) < _SCORES:
            evaluated.scores.append(Scores(""))
            with torch.no_grad():
                measure(evaluated.scores[-1], given, min(1, given.dim() - 1), self._readings)
            self._readings.send()

    def compare_loaders(self) -> None:
        """Note which lines get batches that no step has trained on so far."""
        for inference in self.found.values():
            loaders = self._loaders.get(inference.place, [])
            inference.is_held_out = bool(loaders) and not any(one.trained for one in loaders)

    def deliver(self, *, wait: bool) -> None:
        """Hand out the numbers of losses: there need not be a step after them that would."""
        if wait or self._readings.arrived:
            self._readings.deliver()


def is_idle(layer: nn.Module) -> bool:
    """Whether a dropout would depend on the mode, but its probability is 0."""
    return isinstance(layer, _DropoutNd) and layer.p == 0


def depends_on_mode(layer: nn.Module) -> bool:
    """Whether a layer by itself does another thing in evaluation mode; of a user's own class, whether it asks for the mode."""
    if isinstance(layer, _DropoutNd):
        return bool(layer.p > 0)
    if isinstance(layer, _NormBase):
        return layer.track_running_stats
    if isinstance(layer, (nn.RNNBase, nn.MultiheadAttention)):
        return bool(layer.dropout > 0)
    kind = type(layer)
    if kind.__module__.startswith("torch.nn."):
        return isinstance(layer, nn.RReLU)
    code = getattr(kind.forward, "__code__", None)
    return code is None or "training" in code.co_names
