"""Modules that log figures of their own while they run."""

import weakref
from typing import Any, cast

from torch import nn

from ta_runtime.monitor.interface import Monitor

# Not in the modules, so that a module can be copied and pickled, and a copy does not log.
_MONITORS: "weakref.WeakKeyDictionary[Any, tuple[weakref.ref[Monitor], bool]]" = weakref.WeakKeyDictionary()


class MonitorMixin:
    """Gives a module the monitor that watches it.

    class Layer(nn.Module, MonitorMixin):
        def forward(self, x):
            y = self.linear(x)
            if self.is_monitoring:
                self.get_module_monitor().log_tensor("my_layer/scale", y.abs())
            return y
    """

    def set_module_monitor(self, monitor: Monitor | None = None, is_reference_module: bool = False) -> None:
        """Called by the monitor, for every such module of the model and of the reference."""
        if monitor is None:
            _MONITORS.pop(self, None)
        else:
            _MONITORS[self] = weakref.ref(monitor), is_reference_module

    def get_module_monitor(self) -> Monitor | None:
        """The monitor that watches this module, if one does."""
        found = _MONITORS.get(self)
        return None if found is None else found[0]()

    @property
    def module_monitor(self) -> Monitor | None:
        return self.get_module_monitor()

    @property
    def is_reference_module(self) -> bool:
        """Whether this module is a part of the reference."""
        found = _MONITORS.get(self)
        return found is not None and found[1]

    @property
    def is_monitoring(self) -> bool:
        """Whether what happens now is monitored: of the reference also inside `no_monitor`."""
        monitor = self.get_module_monitor()
        if monitor is None:
            return False
        return monitor.is_monitoring() or (self.is_reference_module and monitor.current_step_monitored)


def introduce(module: nn.Module, monitor: Monitor | None, is_reference: bool) -> None:
    """Tell every such module of a model who watches it, or that nobody does any more."""
    for part in module.modules():
        if isinstance(part, MonitorMixin):
            cast("MonitorMixin", part).set_module_monitor(monitor, is_reference)
