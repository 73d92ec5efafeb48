"""Callbacks for the Trainer of Transformers, and those that derive from it."""

from typing import Any

from ta_runtime.integrations import needs
from ta_runtime.integrations.monitoring import Monitored
from ta_runtime.integrations.snapshotting import Snapshotting
from ta_runtime.integrations.watch import Watching

with needs("transformers"):
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class AuditCallback(Watching, TrainerCallback):
    """Watches `train`, from its beginning to its end; `evaluate` and `predict` train nothing.

    What the Trainer logs beside the loss has `ta/errors` and `ta/warnings`, how many findings there are: for its
    history, and for the callbacks that come after this one. The Trainer tells no callback that training raised: the
    audit then ends with the process, or when the next training begins.
    """

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._watch.begin()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if logs is not None and "loss" in logs:  # the metrics of an evaluation are the user's
            for kept in (logs, *state.log_history[-1:]):
                kept.update(self._watch.counts)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._watch.end()


class MonitorCallback(Monitored, TrainerCallback):
    """Monitors the training batches of `train`.

    By default in the steps that the Trainer logs (`logging_steps`). The entry of its history that has the loss then has the
    numbers of the last step that was monitored, and which it was, as `monitor/step`. Steps are numbered by `global_step`
    before the update.
    """

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._monitoring.begin(kwargs["model"], int(state.logging_steps))

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._monitoring.begin_step(state.global_step)

    def on_substep_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._monitoring.after_micro_batch()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._monitoring.end_step()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if logs is not None and "loss" in logs and state.is_world_process_zero:
            for kept in state.log_history[-1:]:  # not in `logs`, which are printed
                kept.update(self._monitoring.fresh())

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._monitoring.end()


class SnapshotCallback(Snapshotting, TrainerCallback):
    """Takes snapshots of `train`; each rank its own. Step n is the one that `global_step` n goes into.

    The Trainer tells no callback that training raised: the snapshots then end with the process, or when the callback's
    next training begins.
    """

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        optimizer = kwargs["optimizer"]
        plain = getattr(optimizer, "optimizer", optimizer)  # without what Accelerate puts around it
        self._begin(kwargs["model"], [plain] if plain is not None else None, state.global_step)
        self._pause(args.eval_on_start)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._pause(False)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._pause(control.should_evaluate)

    on_epoch_end = on_step_end

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._pause(False)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._end()
