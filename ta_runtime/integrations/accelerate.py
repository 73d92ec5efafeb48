"""The audit of a training loop of one's own under Accelerate."""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from ta_runtime.integrations import needs
from ta_runtime.integrations.watch import Options, Watch
from ta_runtime.observers.patching import Patch

with needs("accelerate"):
    from accelerate import Accelerator


def watch(accelerator: Accelerator, **options: Unpack[Options]) -> None:
    """Watch every training step from here on, until `accelerator.end_training()` or the end of the process.

    Call it before the model is built, on every process. Whatever `accelerator.log` hands to the trackers then has
    `ta/errors` and `ta/warnings` beside it, how many findings there are.

    Args:
        accelerator: what prepares the model and the optimizer.
        options: those of `ta_runtime.enable`. If an audit is on already, it is followed instead, and they do not hold.

    Raises:
        TypeError: there is no such option.
        UsageError: an option or the project's `[tool.ta]` is wrong, or the report cannot be written there.
    """
    watching = Watch(options)

    def counting(original: Callable[..., None]) -> Callable[..., None]:
        def log(values: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
            original({**watching.counts, **values}, *args, **kwargs)

        return log

    def ending(original: Callable[[], None]) -> Callable[[], None]:
        def end_training() -> None:
            watching.end()
            for patch in patches:
                patch.undo()
            original()

        return end_training

    patches = [Patch(accelerator, "log", counting), Patch(accelerator, "end_training", ending)]
    watching.begin()
