import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Noisy(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return {"signal": torch.randn(10), "labels": torch.tensor(index % 3)}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(10, 6)
        self.norm = nn.LayerNorm(6)

    def forward(self, signal):
        return self.norm(self.layer(signal))


class Classifier(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(6, 3)

    def forward(self, signal, labels=None):
        logits = self.head(self.encoder(signal))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class LayerwiseTrainer(Trainer):
    def create_optimizer(self, model=None):
        if self.optimizer is None:
            self.optimizer = torch.optim.SGD(
                [
                    {"params": self.model.encoder.parameters(), "lr": 1e-4},
                    {"params": self.model.head.parameters(), "lr": 1e-2},
                ]
            )
        return self.optimizer

    def create_scheduler(self, num_training_steps, optimizer=None):
        self.lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer or self.optimizer, 2)
        return self.lr_scheduler

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        inputs["signal"] = inputs["signal"] + 0.01 * torch.randn_like(inputs["signal"])
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
        self.accelerator.backward(loss)
        return loss.detach()


trainer = LayerwiseTrainer(
    model=Classifier(Encoder()),
    args=TrainingArguments(
        output_dir="layers",
        num_train_epochs=1,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    ),
    train_dataset=Noisy(),
    eval_dataset=Noisy(),
)
trainer.train()
trainer.evaluate()
