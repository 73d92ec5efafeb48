"""What an observer of a session may be told of, besides what it wraps itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ta_runtime.observers.patching import Undo

if TYPE_CHECKING:
    import torch
    from torch.utils.data import DataLoader

    from ta_runtime.facts import Loader, Run
    from ta_runtime.session import Session
    from ta_runtime.window import Window


class Observer:
    """Watches one part of torch from the start of a session to its end. The session guards each of these methods.

    What an observer wraps itself it wraps with `session.guarded(...)`, and puts what takes it off again into `undo`.
    """

    def __init__(self, session: "Session") -> None:
        self.session = session
        self.undo = Undo()

    def attach(self) -> None:
        """The session starts."""

    def detach(self) -> None:
        """The session ends."""
        self.undo()

    def begin(self, window: "Window") -> None:
        """A new window begins; it is audited if it has a `step`. What the audited step needs can be attached here."""

    def compiles(self) -> None:
        """`torch.compile` was called: what is attached to forward passes now would be compiled into the model."""

    def iterates(self, loader: "DataLoader[Any]") -> None:
        """An iterator over a `DataLoader` is asked for."""

    def batch(self, loader: "Loader", tensors: list[Tensor]) -> None:
        """A `DataLoader` handed out a batch: its tensors in memory that can be read, with its facts."""

    def took_state(self, state: Mapping[str, Any]) -> None:
        """`state_dict()` of a module returned this, with what is inside the module."""

    def loads_state(self, module: nn.Module, state: Any) -> None:
        """`load_state_dict(state)` of a module was called and has not changed anything yet."""

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        """In an audited step: the outermost call of a module is over; its result is None if it raised."""

    def before_backward(self, loss: Tensor) -> None:
        """`loss.backward()` was called and has not run yet."""

    def after_backward(self, loss: Tensor) -> None:
        """`loss.backward()` ran, and did not raise."""

    def scaled(self, scaler: "torch.amp.GradScaler", loss: Any, result: Any) -> None:
        """`scaler.scale(loss)` gave this result."""

    def before_clipping(self, parameters: list[Tensor]) -> None:
        """The gradients of these are to be clipped by norm or value, and have not been yet."""

    def after_clipping(self, parameters: list[Tensor], limit: object) -> None:
        """The gradients of these were clipped at a limit, which may be anything that was given for it."""

    def all_reduced(self, tensor: Tensor) -> None:
        """`all_reduce` was called by the training code, and has put the result into this tensor."""

    def before_step(self, optimizer: "torch.optim.Optimizer", window: "Window") -> None:
        """`optimizer.step()` was called and has not changed anything yet."""

    def after_step(self, optimizer: "torch.optim.Optimizer", window: "Window") -> None:
        """`optimizer.step()` has run."""

    def before_scaler_step(self, scaler: "torch.amp.GradScaler", optimizer: "torch.optim.Optimizer") -> None:
        """`scaler.step(optimizer)` of a scaler that is enabled was called, and has not stepped or skipped yet."""

    def skipped(self, optimizer: "torch.optim.Optimizer") -> None:
        """A GradScaler found an overflow, and left out the step."""

    def report(self, run: "Run") -> None:
        """Put what was seen so far into the facts of the run."""
