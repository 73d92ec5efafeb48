"""A callback for the Trainer of Transformers, and those that derive from it."""

from typing import Any, Unpack

from ta_runtime.integrations import needs
from ta_runtime.integrations.watch import Options, Watch

with needs("transformers"):
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class AuditCallback(TrainerCallback):
    """Watches `train`, from its beginning to its end; `evaluate` and `predict` train nothing.

    What the Trainer logs beside the loss has `ta/errors` and `ta/warnings`, how many findings there are: for its
    history, and for the callbacks that come after this one. The Trainer tells no callback that training raised: the
    audit then ends with the process, or when the next training begins.

    Args:
        options: those of `ta_runtime.enable`. If an audit is on already, it is followed instead, and they do not hold.

    Raises:
        TypeError: there is no such option.
        UsageError: an option or the project's `[tool.ta]` is wrong, or the report cannot be written there.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__()
        self._watch = Watch(options)

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
