"""Notes the modules that are built while a model runs."""

from torch import nn

from ta_runtime.observers.observer import Observer
from ta_runtime.observers.window import Window
from ta_runtime.probes import construction
from ta_runtime.probes.registers import Register


class Births(Observer):
    """Watches the constructor of modules during the forward passes of audited steps."""

    def attach(self) -> None:
        self.births: Register[int] = Register()
        self.undo.append(construction.watch(self.session.guarded(self._note)))

    def begin(self, window: Window) -> None:
        if window.step is not None:
            window.step.births = self.births

    def _note(self, module: nn.Module) -> None:
        if self.session.forwards.running:
            self.births.add(module, self.session.window.index)
