import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs.get("logits")
        loss = nn.functional.cross_entropy(logits, labels, weight=self.class_weights)
        return (loss, outputs) if return_outputs else loss


def main():
    config = BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    rows = [
        {
            "input_ids": torch.randint(0, 30, (6,)),
            "attention_mask": torch.ones(6, dtype=torch.long),
            "labels": i % 2,
        }
        for i in range(12)
    ]
    args = TrainingArguments(
        "out",
        max_steps=3,
        per_device_train_batch_size=4,
        report_to="none",
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = WeightedTrainer(
        model=model, args=args, train_dataset=rows, class_weights=torch.tensor([1.0, 2.0])
    )
    trainer.train()


if __name__ == "__main__":
    main()
