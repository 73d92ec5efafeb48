"""Sees what the language models of transformers are given, on audited steps alone.

A global hook reads the arguments of their calls by name, whoever makes the call: a loop, a trainer, a wrapper. What is asked
of the ids is counted where they lie, and the counts arrive with the other numbers of the step.
"""

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import TokenBatches
from ta_runtime.observers import tokens
from ta_runtime.observers.forwards import MOST_PASSES
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.modules import follow
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_LIBRARY = "transformers.modeling_utils"
_RULES = {"TA151", "TA153", "TA157", "TA158", "TA160"}
_MOST = 32  # calls of one step that are looked at
_LINES = 64
_DECODERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""How transformers names the classes of models that predict tokens."""


class LanguageObserver(Observer):
    """Watches the calls of language models."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = not _RULES.isdisjoint(session.settings.rules)
        self._wants_markers = "TA160" in session.settings.rules
        self._hooks = Undo()
        self._found: dict[tuple[Place, str], TokenBatches] = {}
        self._inside: nn.Module | None = None  # the language model that runs
        self._seen = 0
        self._untrained = 0

    def attach(self) -> None:
        self.undo.append(self._hooks)
        if self._wanted:
            self.undo.append(construction.watch(self.session.guarded(self._built)))

    def begin(self, window: "Window") -> None:
        self._inside, self._seen = None, 0
        if window.step is None or self.session.runs_compiled:
            self._hooks()
        else:
            self._look()

    def compiles(self) -> None:
        self._hooks()

    def report(self, run: "Run") -> None:
        run.language.batches = list(self._found.values())

    def _built(self, module: nn.Module) -> None:
        """A module is built: that of the first model is when a script has loaded transformers."""
        if not self._hooks and self.session.window.step is not None and not self.session.runs_compiled:
            self._look()

    def _look(self) -> None:
        if not self._wanted or self._hooks or _LIBRARY not in sys.modules:
            return
        enters = self.session.guarded(self._enters)
        leaves = self.session.guarded(self._leaves)

        def enter(module: nn.Module, args: tuple[Any, ...]) -> None:
            if self._inside is not None:
                return
            if self.session.infers and self._trains_nothing():
                return
            if _is_language_model(_kind(module)):
                enters(module)

        def leave(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
            if module is self._inside:
                leaves(module, args, rest)

        self._hooks.append(follow(enter, leave))

    def _trains_nothing(self) -> bool:
        """Whether so many modules have run before any optimizer was built that nobody may be about to train."""
        self._untrained += 1
        if self._untrained > MOST_PASSES:
            self._hooks()
        return self._untrained > MOST_PASSES

    # -- calls ------------------------------------------------------------------------------------------------

    def _enters(self, module: nn.Module) -> None:
        if not torch.compiler.is_compiling():
            self._inside = module

    def _leaves(self, module: nn.Module, args: tuple[Any, ...], rest: tuple[Any, ...]) -> None:
        self._inside = None
        raised = len(rest) == 1
        if raised or self._seen == _MOST or not torch.is_grad_enabled() or in_backward():
            return
        if self.session.infers:  # what nothing trains is no batch, and no reason to look for tokenizers
            return
        given = named(module, args, rest[0])
        ids = given.get("input_ids")
        if type(ids) is Tensor and ids.dim() == 2 and ids.numel() and not ids.is_meta:
            self._seen += 1
            with torch.no_grad():
                self._note(module, ids, given)

    def _note(self, module: nn.Module, ids: Tensor, given: dict[str, Any]) -> None:
        model = base(module)
        place, name = here(), type(model).__name__
        found = self._found.get((place, name))
        if found is None:
            if len(self._found) == _LINES:
                return
            tuned = model is not module or bool(getattr(model, "name_or_path", ""))
            found = self._found[place, name] = TokenBatches(
                place, model=name, shifts=shifts(model), tuned=tuned
            )
        special = found.special = self.session.tokenizers.special(model)
        found.batches += 1
        found.rows += len(ids)
        labels, mask = given.get("labels"), given.get("attention_mask")
        attended = tokens.attended(ids, mask, special)
        if attended is not None and self._wants_markers:
            found.markers.models.add(id(model))
            opened = tokens.opened(ids, attended, self.session.tokenizers.markers)
            tokens.add_markers(found.markers, len(ids), opened, self.session.window.readings)
        counts: dict[str, Tensor] = {}
        if attended is not None and special.begin is not None:
            counts |= tokens.begins(ids, attended, special.begin)
        if type(labels) is not Tensor or labels.shape != ids.shape or given.get("shift_labels") is not None:
            tokens.add(found, counts, self.session.window.readings)
            return
        counts |= tokens.compared(ids, labels)
        if attended is not None and special.end is not None:
            found.labelled += len(ids)
            found.separated |= mask is None and given.get("use_cache") is False
            counts |= tokens.ends(ids, labels, attended, special.end)
            counts |= tokens.joints(ids, attended, special.end, given.get("position_ids"))
        tokens.add(found, counts, self.session.window.readings)


# -- which models ---------------------------------------------------------------------------------------------


def _kind(module: Any) -> Any:
    return type(module)


@cache
def _is_language_model(kind: Any) -> bool:
    """Whether it is a class of transformers that predicts tokens, or what PEFT puts around one."""
    names = [base.__module__.partition(".")[0] for base in kind.__mro__]
    if names[0] == "peft":
        return hasattr(kind, "get_base_model")
    return "transformers" in names and any(base.__name__.endswith(_DECODERS) for base in kind.__mro__)


def base(module: nn.Module) -> nn.Module:
    """The model inside the adapters of PEFT."""
    inside: Callable[[], nn.Module] | None = getattr(module, "get_base_model", None)
    return inside() if inside is not None else module


def shifts(model: nn.Module) -> bool:
    """Whether a model shifts labels: a decoder whose `forward` is that of transformers."""
    forward = getattr(type(model).forward, "__module__", "")
    return forward.startswith("transformers.") and not getattr(model.config, "is_encoder_decoder", True)


def predicts_tokens(model: nn.Module) -> bool:
    """Whether it is a model of transformers whose labels are tokens, and not tags or classes."""
    return any(kind.__name__.endswith((*_DECODERS, "ForMaskedLM")) for kind in type(model).__mro__)


def named(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a module, by name."""
    return dict(zip(_parameters(_kind(module)), args, strict=False)) | kwargs


@cache
def _parameters(kind: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(kind.forward).parameters)[1:]
