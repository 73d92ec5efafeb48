import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments, get_linear_schedule_with_warmup


class Unfreeze(TrainerCallback):
    def on_epoch_begin(self, args, state, control, model=None, **kwargs):
        if state.epoch >= 1:
            for p in model.body.parameters():
                p.requires_grad = True

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step >= 5:
            control.should_training_stop = True


class Tagger(nn.Module):
    def __init__(self, vocabulary=15, tags=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)
        self.body = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(16, tags)
        self.loss = nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, input_ids, labels=None):
        states, _ = self.body(self.embed(input_ids))
        logits = self.tag(states)
        if labels is None:
            return (logits,)
        return self.loss(logits.flatten(0, 1), labels.flatten()), logits


model = Tagger()
for p in model.body.parameters():
    p.requires_grad = False
dataset = [{"input_ids": torch.randint(0, 15, (5,)), "labels": torch.randint(0, 3, (5,))} for _ in range(12)]
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=6)
training_args = TrainingArguments(
    output_dir="tagger",
    num_train_epochs=2,
    per_device_train_batch_size=4,
    logging_steps=1,
    report_to=[],
    use_cpu=True,
    save_strategy="no",
    disable_tqdm=True,
)
trainer = Trainer(
    model, training_args, train_dataset=dataset, optimizers=(optimizer, scheduler), callbacks=[Unfreeze()]
)
trainer.train()
