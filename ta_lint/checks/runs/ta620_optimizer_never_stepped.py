"""TA620: an optimizer never stepped, although its parameters had gradients."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = (("optim", "*optimizer*", "*adam*"),)
AROUND = (("*backward", "training_step", "*Trainer"),)

CLEARED = 3
"""How often its gradients were cleared without a step between: some loops clear twice before the first."""
OTHERS = 20
"""Steps of other optimizers meanwhile: a GAN may train one of its networks some times more often than the other."""


def check_run(run: Run) -> Iterator[Said]:
    for optimizer in run.loop.optimizers:
        if optimizer.steps:
            yield Refutation(optimizer.built, f"it steps {optimizer.steps} times", {"steps": optimizer.steps})
        elif not optimizer.had_gradients:
            yield Unobserved(optimizer.built, "its parameters have no gradients")
        elif not run.broke_off and not optimizer.shares:
            evidence = {
                "cleared with gradients": optimizer.cleared,
                "steps of other optimizers": optimizer.others,
            }
            if optimizer.cleared >= CLEARED or optimizer.others >= OTHERS:
                message = (
                    f"`{optimizer.kind}` is never stepped, so its parameters never change: call `step()`"
                )
                yield Suspicion(optimizer.built, message, evidence)
