"""Sees whether models of `from_pretrained`, which returns them in evaluation mode, are trained in it, on audited steps alone."""

import sys
import weakref
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from ta_runtime.facts import Pretrained
from ta_runtime.observers.inferences import depends_on_mode
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import caller, here, is_library
from ta_runtime.probes.registers import BUILT, Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_LIBRARY = "transformers.modeling_utils"
_MOST = 16  # models
_TRAINED = 0.5  # of the parameters of a model: of one that is mostly frozen the mode is a choice


@dataclass(slots=True)
class _Seen:
    module: "weakref.ref[nn.Module]"
    facts: Pretrained


class PretrainedModels(Observer):
    """Watches the models that were loaded."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = "TA152" in session.settings.rules
        self._chosen: Register[bool] = Register()
        """Modules that the training code has put into evaluation mode itself."""
        self._switching = False
        self._known: Register[Pretrained] = Register()
        self._found: list[Pretrained] = []
        self._called: list[_Seen] = []  # in this step

    def begin(self, window: "Window") -> None:
        self._called = []

    def train(self, call: Call) -> End | None:
        """A module is put into a mode, which puts its parts into it."""
        if self._switching or not self._wanted or _LIBRARY not in sys.modules:
            return None
        if not call.given(1, "mode", True) and not _is_of_library():
            for part in filter(_is_loaded, call.args[0].modules()):
                self._chosen.add(part, True)
        self._switching = True
        return self._switched

    def _switched(self, call: Call) -> None:
        self._switching = False

    def report(self, run: "Run") -> None:
        run.pretrained = list(self._found)

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if not self._wanted or result is None or not torch.is_grad_enabled() or _LIBRARY not in sys.modules:
            return
        for part in module.modules():
            if _is_loaded(part):
                facts = self._known.get(part) or self._meet(part)
                if facts is not None and part not in self._chosen:
                    self._called.append(_Seen(weakref.ref(part), facts))
                return

    def _meet(self, module: nn.Module) -> Pretrained | None:
        layers = _layers(module)
        if not layers or len(self._found) == _MOST or not _is_trained(module):
            return None
        place = BUILT.get(module) or here()
        facts = Pretrained(place, type(module).__name__, len(layers), here())
        self._known.add(module, facts)
        self._found.append(facts)
        return facts

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        called, self._called = self._called, []
        for seen in called[:1]:
            module = seen.module()
            if module is None or not _has_gradient(module):
                continue
            seen.facts.looks += 1
            seen.facts.steps = self.session.step_count
            seen.facts.still += not any(layer.training for layer in _layers(module))


def _is_of_library() -> bool:
    """Whether a library switches the mode, past the `eval` and `train` that hand it on."""
    frame: FrameType | None = caller()
    while frame is not None and frame.f_code.co_name in ("train", "eval"):
        frame = frame.f_back
    return frame is not None and is_library(frame.f_code.co_filename)


def _is_loaded(module: nn.Module) -> bool:
    """Whether it is a model of transformers whose weights were loaded."""
    base = getattr(sys.modules.get(_LIBRARY), "PreTrainedModel", None)
    return base is not None and isinstance(module, base) and bool(getattr(module, "name_or_path", ""))


def _layers(module: nn.Module) -> list[nn.Module]:
    layers = (layer for layer in module.modules() if isinstance(layer, (_DropoutNd, _NormBase)))
    return [layer for layer in layers if depends_on_mode(layer)]


def _is_trained(module: nn.Module) -> bool:
    sizes = [(parameter.numel(), parameter.requires_grad) for parameter in module.parameters()]
    learns = sum(size for size, trained in sizes if trained)
    return learns >= _TRAINED * sum(size for size, _ in sizes)


def _has_gradient(module: nn.Module) -> bool:
    return any(parameter.grad is not None for parameter in module.parameters())
