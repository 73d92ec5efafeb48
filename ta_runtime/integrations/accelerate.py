"""The audit, the monitor and the snapshots of a training loop of one's own under Accelerate."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from torch import nn

from ta_runtime.integrations import needs
from ta_runtime.integrations.monitoring import Monitoring, MonitorOptions
from ta_runtime.integrations.snapshotting import SnapshotOptions
from ta_runtime.integrations.watch import Watch, WatchOptions, quietly
from ta_runtime.monitor import ModuleMonitor
from ta_runtime.probes.patching import Call
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from ta_runtime.snapshot import Snapshots

with needs("accelerate"):
    from accelerate import Accelerator


def watch(accelerator: Accelerator, **options: Unpack[WatchOptions]) -> None:
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
    _follow(accelerator, watching.end, lambda: watching.counts)
    watching.begin()


def monitor(
    accelerator: Accelerator,
    model: nn.Module | ModuleMonitor,
    *,
    step: int = 0,
    **options: Unpack[MonitorOptions],
) -> ModuleMonitor:
    """Monitor a model from here on, until `accelerator.end_training()` or the end of the process.

    Call it when the model is prepared, on every process. A step is over when every optimizer has stepped, or a gradient
    scaler has skipped it; forward passes without gradients are not monitored. What `accelerator.log` hands to the
    trackers then has the numbers of the last monitored step beside it, and which it was, as `monitor/step`.

    Args:
        accelerator: what prepared the model.
        model: what is trained; or a monitor of it, with its metrics and its schedule.
        step: the first step that comes, of a training that goes on from a checkpoint.
        options: those of `MonitorOptions`, by default each 50th step; beside a monitor `before_clip` alone.

    Returns:
        The monitor.

    Raises:
        TypeError: there is no such option.
        UsageError: an option is wrong, or has to do with what a monitor that is given does by itself.
    """
    from ta_runtime.probes.counter import StepCounter

    given = model if isinstance(model, ModuleMonitor) else None
    module = given.module if given is not None else model
    monitoring = Monitoring(given, options)
    if module is not None:
        monitoring.begin(accelerator.unwrap_model(module))

    def over() -> None:
        monitoring.end_step()
        monitoring.begin_step(steps.index)

    steps = StepCounter(None, _nothing, _nothing, over, _quiet)
    steps.index = step

    def end() -> None:
        steps.detach()
        monitoring.abandon_step()
        monitoring.end()

    _follow(accelerator, end, lambda: monitoring.fresh() if accelerator.is_main_process else {})
    steps.attach()
    monitoring.begin_step(step)
    return monitoring.monitor


def snapshots(
    accelerator: Accelerator, folder: str | Path, *, step: int = 0, **options: Unpack[SnapshotOptions]
) -> "Snapshots":
    """Take snapshots from here on, until `accelerator.end_training()` or the end of the process.

    Call it before the loop, on every process.

    Args:
        accelerator: what prepares the model and the optimizer.
        folder: that of the run, which must hold none yet.
        step: the first step that comes, of a training that goes on from a checkpoint.
        options: those of `ta_runtime.snapshot.Snapshots`.

    Returns:
        What takes them.

    Raises:
        TypeError: there is no such option.
        UsageError: an option is wrong, or the folder holds a run already; pyarrow is missing.
    """
    from ta_runtime.snapshot import Snapshots  # and pyarrow

    taking = Snapshots(folder, **options)
    _follow(accelerator, taking.stop)
    taking.start()
    taking.count_from(step)
    return taking


def _follow(
    accelerator: Accelerator, end: Callable[[], object], numbers: Callable[[], Mapping[str, float]] = dict
) -> None:
    """Call `end` when the training does; until then put numbers beside whatever is logged."""

    def counting(call: Call) -> None:
        values = call.given(0, "values")
        call.args = ({**numbers(), **values}, *call.args[1:])
        call.kwargs.pop("values", None)

    def ending(call: Call) -> None:
        try:
            end()
        finally:
            undo()

    undo = Undo()
    undo.patch(accelerator, "log", counting)
    undo.patch(accelerator, "end_training", ending)


def _quiet(method: Callable[..., Any], *args: Any) -> Any:
    with quietly():
        return method(*args)


def _nothing(*args: Any) -> None:
    pass
