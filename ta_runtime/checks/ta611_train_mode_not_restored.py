"""TA611: a model is put into evaluation mode and then trained further in it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for switch in run.modes.switches:
        if switch.trained and switch.layers and switch.evaluated:
            message = f"`{switch.model}` trains in evaluation mode: call `train()` after evaluating"
            evidence = {"steps in evaluation mode": switch.trained, "layers that depend on it": switch.layers}
            at = switch.trained_at
            related = ((at, "a step in evaluation mode"),) if at is not None else ()
            yield Suspicion(switch.place, message, evidence, related=related)
        elif switch.trained and not switch.layers:
            yield Refutation(switch.place, {"layers that depend on the mode": 0})
        elif switch.restored and not switch.trained:
            yield Refutation(switch.place, {"back in training mode": switch.restored})
