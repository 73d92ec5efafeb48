"""A callback for the Trainer of Transformers, and those that derive from it."""

from typing import Any

from ta_runtime.integrations import needs
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
