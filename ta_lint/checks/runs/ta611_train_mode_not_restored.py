"""TA611: a model is put into evaluation mode and then trained further in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (("eval", "train"),)
AROUND = ("*backward",)


def check_progress(run: Run) -> Iterator[Said]:
    for switch in run.switches:
        if switch.trained and switch.layers and switch.evaluated:
            message = "the model trains on in evaluation mode: call `train()` after the evaluation"
            evidence = {"steps in evaluation mode": switch.trained, "layers that depend on it": switch.layers}
            at = switch.trained_at
            related = ((at, "a step in evaluation mode"),) if at is not None else ()
            yield Suspicion(switch.place, message, evidence, related=related, is_note=not switch.is_seen)
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


def fix(module: "FileFacts", switch: "Site") -> "ProposedFix | None":
    """Call `train()` at the start of the pass, or between the evaluation there and the training."""
    from ta_lint.facts.train_again import train_again

    return train_again(module, switch)
