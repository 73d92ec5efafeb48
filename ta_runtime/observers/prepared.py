"""Sees which backward passes and steps go through Accelerate, by the frames of their calls: nothing of it is wrapped."""

import sys
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ta_runtime.facts import Prepared
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import comes_through, here

if TYPE_CHECKING:
    import torch

    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_PACKAGE = "accelerate"


class PreparedCalls(Observer):
    """Watches the backward passes and steps of a session in which Accelerate is in use."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._seen = Prepared()

    def before_backward(self, loss: Tensor) -> None:
        state = _states()
        if state is None:
            return
        self._seen.duties = _duties(*state) or self._seen.duties
        self._seen.processes = int(state[0].get("num_processes", 1))
        passes = self._seen.backwards if comes_through(_PACKAGE) else self._seen.bypassing
        passes[self.session.backwards.place] += 1

    def before_step(self, optimizer: "torch.optim.Optimizer", window: "Window") -> None:
        if _states() is not None:
            steps = self._seen.steps if comes_through(_PACKAGE) else self._seen.bare_steps
            steps[here()] += 1

    def report(self, run: "Run") -> None:
        run.prepared = self._seen


def _states() -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What Accelerate keeps for the whole process, of the run and of its gradients; None where no `Accelerator` was made."""
    module = sys.modules.get(f"{_PACKAGE}.state")
    run = getattr(getattr(module, "AcceleratorState", None), "_shared_state", None)
    gradients = getattr(getattr(module, "GradientState", None), "_shared_state", None)
    return (run, gradients) if isinstance(run, dict) and run and isinstance(gradients, dict) else None


def _duties(run: dict[str, Any], gradients: dict[str, Any]) -> tuple[str, ...]:
    batches = (gradients.get("plugin_kwargs") or {}).get("num_steps", 1)
    found = [f"divides the loss by {batches}"] if isinstance(batches, int) and batches > 1 else []
    if run.get("_mixed_precision") == "fp16":
        found.append("scales the loss for float16")
    return tuple(found)
