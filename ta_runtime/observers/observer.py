"""What an observer of a session may be told of, besides the actions of a `Listener`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from ta_runtime.probes import hub
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Watch
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    import torch

    from ta_runtime.facts import Loader, Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window


class Observer(Listener):
    """Watches one part of torch from the start of a session to its end. The session guards each of its methods.

    Of a `Listener` it overrides what it wants to know; these are told beside that. What it watches for a while goes by
    `_listen`, and ends with `undo`.
    """

    def __init__(self, session: "Context") -> None:
        self.session = session
        self.undo = Undo()

    def _listen(self, event: str, method: Watch) -> None:
        """Let a method hear of an event until `undo`."""
        self.undo.append(hub.watch(event, method, self.session.barrier.run))

    def attach(self) -> None:
        """The session starts."""

    def detach(self) -> None:
        """The session ends."""
        self.undo()

    @property
    def settled(self) -> bool:
        """Whether the next steps may be but counted: what a loop does in each is then not told."""
        return True

    def loses_track(self) -> None:
        """From here on steps are but counted."""

    def counted(self, optimizer: "torch.optim.Optimizer", steps: int) -> None:
        """So many steps of an optimizer were but counted, and the next is told again, from somewhere in its middle."""

    def begin(self, window: "Window") -> None:
        """A new window begins; it is audited if it has a `step`. What the audited step needs can be attached here."""

    def compiles(self) -> None:
        """`torch.compile` was called: what is attached to forward passes now would be compiled into the model."""

    def handed_out(self, loader: "Loader", tensors: list[Tensor]) -> None:
        """A `DataLoader` handed out a batch: its tensors in memory that can be read, with its facts."""

    def pass_ended(self, loader: "Loader") -> None:
        """A pass over a `DataLoader` came to its end."""

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

    def all_reduced(self, tensor: Tensor) -> None:
        """`all_reduce` was called by the training code, and has put the result into this tensor."""

    def before_step(self, optimizer: "torch.optim.Optimizer", window: "Window") -> None:
        """`optimizer.step()` was called and has not changed anything yet."""

    def after_step(self, optimizer: "torch.optim.Optimizer", window: "Window") -> None:
        """`optimizer.step()` has run."""

    def skipped(self, optimizer: "torch.optim.Optimizer") -> None:
        """A GradScaler found an overflow, and left out the step."""

    def report(self, run: "Run") -> None:
        """Put what was seen so far into the facts of the run."""


class ThoroughObserver(Observer):
    """Listens in windows that are looked at thoroughly, where a rule of its own is on and nothing is compiled."""

    rules: ClassVar[frozenset[str]]

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = not self.rules.isdisjoint(session.settings.rules)

    def _watches(self) -> Mapping[str, Watch]:
        """Who hears of which event."""
        raise NotImplementedError

    def begin(self, window: "Window") -> None:
        self.undo()
        if self._wanted and window.thorough and not self.session.runs_compiled:
            for event, method in self._watches().items():
                self._listen(event, method)

    def compiles(self) -> None:
        self.undo()
