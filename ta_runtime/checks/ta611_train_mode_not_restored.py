"""TA611: a model is put into evaluation mode and then trained further in it."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Sight, Suspicion, Unobserved


def check_progress(run: Run) -> Iterator[Said]:
    for switch in run.modes.switches:
        if switch.trained and switch.layers and switch.evaluated:
            message = f"`{switch.model}` trains in evaluation mode: call `train()` after evaluating"
            evidence = {"steps in evaluation mode": switch.trained, "layers that depend on it": switch.layers}
            at = switch.trained_at
            related = ((at, "a step in evaluation mode"),) if at is not None else ()
            yield Suspicion(switch.place, message, evidence, related=related)
        elif switch.trained and not switch.layers:
            if switch.idle:
                yield Unobserved(switch.place, "its dropout is 0 in this run")
                continue
            because = f"no layer depends on the mode, in {switch.trained} steps in evaluation mode"
            numbers = {"layers that depend on the mode": 0}
            yield Refutation(switch.place, because, numbers, rests_on=Sight.LAYERS)
        elif switch.restored and not switch.trained:
            because = f"back in training mode before the next step, {switch.restored} times"
            yield Refutation(switch.place, because, {"back in training mode": switch.restored})
        elif not switch.trained:
            yield Unobserved(switch.place, "no step follows it")
