"""What observers ask of the session that they belong to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ta_runtime.facts import Loader, Machine, Model
from ta_runtime.facts.history import History
from ta_runtime.naming import Names
from ta_runtime.observers.tokenizers import Tokenizers
from ta_runtime.observers.window import Window
from ta_runtime.probes.compile import Compilers
from ta_runtime.probes.guard import FaultBarrier
from ta_runtime.probes.places import Place
from ta_runtime.settings import Settings


class KnownLoaders(Protocol):
    """What is known of loaders."""

    found: list[Loader]

    @property
    def current(self) -> Loader | None:
        """The loader that handed out the last batch."""

    def facts(self, loader: Any) -> Loader | None:
        """What is known of a loader that was iterated."""

    def origin(self, tensor: Tensor) -> Loader | None:
        """The loader that handed a tensor out as part of its last batch."""


class CurrentStep(Protocol):
    """The step of an optimizer that runs, or ran last."""

    place: Place
    by_scaler: bool


class CurrentBackward(Protocol):
    """The backward pass that runs, or ran last."""

    place: Place


class CurrentForward(Protocol):
    """The forward pass that runs."""

    @property
    def running(self) -> bool:
        """Whether a model runs now, in an audited step."""


class Context(Protocol):
    """A session, as its observers see it."""

    settings: Settings
    names: Names
    history: History
    window: Window
    barrier: FaultBarrier
    compilers: Compilers
    tokenizers: Tokenizers
    wants_digests: bool
    wants_filters: bool

    @property
    def step_count(self) -> int: ...
    @property
    def slept(self) -> int: ...
    @property
    def observers(self) -> Sequence[object]: ...
    @property
    def loaders(self) -> KnownLoaders: ...
    @property
    def optimizers(self) -> CurrentStep: ...
    @property
    def backwards(self) -> CurrentBackward: ...
    @property
    def forwards(self) -> CurrentForward: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def device_idle(self) -> bool | None: ...
    @property
    def runs_compiled(self) -> bool: ...
    @property
    def infers(self) -> bool: ...
    def watches(self, optimizer: torch.optim.Optimizer) -> bool: ...
    def looks_at(self, window: Window) -> bool: ...
    def model(self, module: nn.Module, caller: Place) -> Model: ...
    def guarded(self, method: Callable[..., Any]) -> Callable[..., Any]: ...
    def window_for(self, optimizer: torch.optim.Optimizer) -> Window: ...
    def tell(self, event: str, *args: object) -> None: ...
    def stepped(self, optimizer: torch.optim.Optimizer) -> None: ...
    def trains_by_hand(self, passes: int) -> None: ...
    def stepped_by_hand(
        self, stand_in: torch.optim.Optimizer, place: Place, gradients: Sequence[Tensor | None] | None
    ) -> None: ...
    def skipped(self, optimizer: torch.optim.Optimizer) -> None: ...
    def ask(self, fact: str, value: object, step: int | None = None) -> None: ...
    def ask_soon(self) -> None: ...
    def audit_next(self) -> None: ...
    def begins_phase(self) -> None: ...
    def logs(self, values: Mapping[str, float]) -> None: ...
