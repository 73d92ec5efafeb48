import torch
from transformers import (
    EarlyStoppingCallback,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)


class LMTrainer(Trainer):
    def log(self, logs, *args, **kwargs):
        super().log(logs, *args, **kwargs)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        with torch.no_grad():
            loss = self.compute_loss(model, inputs)
        return loss.detach(), None, None


def model_init():
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=16, n_embd=8, n_layer=1, n_head=2, n_positions=12, bos_token_id=0, eos_token_id=0
        )
    )


data = [{"input_ids": ids, "labels": ids.clone()} for ids in torch.randint(0, 16, (20, 8))]
trainer = LMTrainer(
    model_init=model_init,
    args=TrainingArguments(
        "gpt",
        num_train_epochs=2,
        per_device_train_batch_size=5,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        gradient_checkpointing=False,
    ),
    train_dataset=data[:10],
    eval_dataset=data[10:],
    callbacks=[EarlyStoppingCallback(3)],
)
trainer.train()
