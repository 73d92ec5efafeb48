import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Points(Dataset):
    def __init__(self, size):
        self.x = torch.randn(size, 5)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.y[index]}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 8)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(8, 2)

    def forward(self, x, labels=None):
        logits = self.classifier(self.dropout(torch.relu(self.hidden(x))))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def compute_metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


args = TrainingArguments(
    output_dir="out",
    num_train_epochs=2,
    per_device_train_batch_size=4,
    learning_rate=1e-3,
    eval_strategy="epoch",
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(
    model=Model(),
    args=args,
    train_dataset=Points(16),
    eval_dataset=Points(8),
    compute_metrics=compute_metrics,
)
trainer.train()
print(trainer.evaluate())
