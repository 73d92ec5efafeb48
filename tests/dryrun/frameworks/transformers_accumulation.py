from dataclasses import dataclass

import torch
from torch import nn
from transformers import HfArgumentParser, Trainer, TrainingArguments, set_seed


@dataclass
class ModelArguments:
    width: int = 8
    dropout: float = 0.1


class Regression(nn.Module):
    def __init__(self, width: int, dropout: float):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Dropout(dropout), nn.Linear(width, 1))

    def forward(self, features, target=None):
        prediction = self.layers(features).squeeze(-1)
        return {"loss": nn.functional.mse_loss(prediction, target), "prediction": prediction}


@dataclass
class Collator:
    scale: float = 2.0

    def __call__(self, rows):
        features = torch.stack([row[0] for row in rows]) * self.scale
        return {"features": features, "target": torch.stack([row[1] for row in rows])}


def main():
    (model_args,) = HfArgumentParser(ModelArguments).parse_args_into_dataclasses(args=[])
    set_seed(3)
    rows = [(torch.randn(4), torch.randn(())) for _ in range(32)]
    training_args = TrainingArguments(
        output_dir="regression",
        num_train_epochs=2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_grad_norm=0.5,
        remove_unused_columns=False,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=Regression(model_args.width, model_args.dropout),
        args=training_args,
        train_dataset=rows,
        data_collator=Collator(),
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
