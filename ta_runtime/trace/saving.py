"""Records what a run saves and loads: `torch.save` and `torch.load`, `state_dict` and `load_state_dict`."""

from ta_lint.core.protocol import Action
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.trace import titles
from ta_runtime.trace.call_recorder import CallRecorder, Said
from ta_runtime.trace.layers import LayerNames


class Saving(Listener):
    """Records the outermost of these calls."""

    def __init__(self, recorder: CallRecorder, layers: LayerNames) -> None:
        self._record, self._layers = recorder.record, layers

    def save(self, call: Call) -> End | None:
        return self._record(call, _begin_save)

    def load(self, call: Call) -> End | None:
        return self._record(call, _begin_load)

    def module_state(self, call: Call) -> End | None:
        return self._record(call, self._of_module)

    def load_module_state(self, call: Call) -> End | None:
        return self._record(call, self._of_module)

    def _of_module(self, call: Call) -> Said:
        method = call.function.__name__
        return _ACTIONS[method], f"torch.nn.Module.{method}", self._layers.subject(call.args[0])

    def optimizer_state(self, call: Call) -> End | None:
        return self._record(call, self._of_optimizer)

    def load_optimizer_state(self, call: Call) -> End | None:
        return self._record(call, self._of_optimizer)

    def _of_optimizer(self, call: Call) -> Said:
        method, optimizer = call.function.__name__, call.args[0]
        name = f"{titles.of_class(type(optimizer))}.{method}"
        return _ACTIONS[method], name, self._layers.of_optimizer(optimizer)


_ACTIONS = {"state_dict": Action.SAVE, "load_state_dict": Action.LOAD}


def _begin_save(call: Call) -> Said:
    return Action.SAVE, "torch.save", ""


def _begin_load(call: Call) -> Said:
    return Action.LOAD, "torch.load", ""
