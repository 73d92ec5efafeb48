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

from ta_runtime.facts import Language, SpecialTokens, TokenBatches
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.tokenizers import Tokenizers
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
_RULES = {"TA151", "TA153"}
_MOST = 32  # calls of one step that are looked at
_LINES = 64
_IGNORED = -100
_DECODERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""How transformers names the classes of models that predict tokens."""


class LanguageObserver(Observer):
    """Watches the calls of language models."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = not _RULES.isdisjoint(session.settings.rules)
        self._hooks = Undo()
        self._tokenizers = Tokenizers()
        self._found: dict[tuple[Place, str], TokenBatches] = {}
        self._inside: nn.Module | None = None  # the language model that runs
        self._seen = 0

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
        run.language = Language(list(self._found.values()))

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
            if self._inside is None and _is_language_model(_kind(module)):
                enters(module)

        def leave(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
            if module is self._inside:
                leaves(module, args, rest)

        self._hooks.append(follow(enter, leave))

    # -- calls ------------------------------------------------------------------------------------------------

    def _enters(self, module: nn.Module) -> None:
        if not torch.compiler.is_compiling():
            self._inside = module

    def _leaves(self, module: nn.Module, args: tuple[Any, ...], rest: tuple[Any, ...]) -> None:
        self._inside = None
        raised = len(rest) == 1
        if raised or self._seen == _MOST or not torch.is_grad_enabled() or in_backward():
            return
        given = dict(zip(_parameters(_kind(module)), args, strict=False)) | rest[0]
        ids = given.get("input_ids")
        if type(ids) is Tensor and ids.dim() == 2 and ids.numel() and not ids.is_meta:
            self._seen += 1
            with torch.no_grad():
                self._note(module, ids, given)

    def _note(self, module: nn.Module, ids: Tensor, given: dict[str, Any]) -> None:
        model = _base(module)
        place, name = here(), type(model).__name__
        found = self._found.get((place, name))
        if found is None:
            if len(self._found) == _LINES:
                return
            found = self._found[place, name] = TokenBatches(place, name, _shifts(model))
        found.special = self._tokenizers.special(model)
        found.batches += 1
        found.rows += len(ids)
        counts: dict[str, Tensor] = {}
        attended = _attended(ids, given.get("attention_mask"), found.special)
        labels = given.get("labels")
        if type(labels) is Tensor and labels.shape == ids.shape and given.get("shift_labels") is None:
            counts |= _compare(ids, labels)
            if attended is not None and found.special.end is not None:
                found.labelled += len(ids)
                counts |= _count_ends(ids, labels, attended, found.special.end)
        self._add(found, counts)

    def _add(self, found: TokenBatches, counts: dict[str, Tensor]) -> None:
        def deliver(values: list[float]) -> None:
            for name, value in zip(counts, values, strict=True):
                setattr(found, name, getattr(found, name) + int(value))

        if counts:
            self.session.window.readings.scalars(list(counts.values()), deliver)


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


def _base(module: nn.Module) -> nn.Module:
    """The model inside the adapters of PEFT."""
    inside: Callable[[], nn.Module] | None = getattr(module, "get_base_model", None)
    return inside() if inside is not None else module


def _shifts(model: nn.Module) -> bool:
    """Whether a model shifts labels: a decoder whose `forward` is that of transformers."""
    forward = getattr(type(model).forward, "__module__", "")
    return forward.startswith("transformers.") and not getattr(model.config, "is_encoder_decoder", True)


@cache
def _parameters(kind: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(kind.forward).parameters)[1:]


# -- what is counted ------------------------------------------------------------------------------------------


def _attended(ids: Tensor, mask: Any, special: SpecialTokens) -> Tensor | None:
    """Which tokens of each row are attended to; None where the mask says more than that.

    Without a mask it is all that is not padding; the end token, where it pads too, is then the end of its row as well.
    """
    if type(mask) is Tensor and mask.shape == ids.shape:
        return mask.ne(0)
    if mask is not None:
        return None
    if special.pad is None or special.pad == special.end:
        return torch.ones_like(ids, dtype=torch.bool)
    return ids.ne(special.pad)


def _compare(ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The labels beside the tokens at their own positions, and beside those after."""
    here_, after, given = ids[:, :-1], ids[:, 1:], labels[:, :-1]
    live = given != _IGNORED
    return {
        "live": live.sum(),
        "live_as_same": (live & (given == here_)).sum(),
        "live_as_next": (live & (given == after)).sum(),
    }


def _count_ends(ids: Tensor, labels: Tensor, attended: Tensor, end: int) -> dict[str, Tensor]:
    """The rows that end in the end token, and how often it is a label."""
    places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
    last = (places * attended).argmax(dim=1, keepdim=True)
    return {"ended": (ids.gather(1, last) == end).sum(), "end_labels": (labels == end).sum()}
