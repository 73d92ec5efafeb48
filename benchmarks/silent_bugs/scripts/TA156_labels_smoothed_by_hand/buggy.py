"""Fine-tuning with smoothed labels, by a Trainer whose loss is our own."""

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed


class Counting(Dataset):
    def __init__(self, count, length=16):
        start = torch.randint(40, (count, 1), generator=torch.Generator().manual_seed(6))
        self.ids = 2 + (start + torch.arange(length)) % 40

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


class Smoothing(Trainer):
    smoothing = 0.1

    def compute_loss(  # bug: TA156 (static)
        self, model, inputs, return_outputs=False, num_items_in_batch=None
    ):
        labels = inputs["labels"][:, 1:].flatten()
        outputs = model(input_ids=inputs["input_ids"])
        logits = outputs.logits[:, :-1].flatten(0, 1)
        loss = F.cross_entropy(logits, labels, label_smoothing=self.smoothing)
        return (loss, outputs) if return_outputs else loss


def main():
    set_seed(156)
    config = LlamaConfig(
        vocab_size=42, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    arguments = TrainingArguments(
        output_dir="counting",
        per_device_train_batch_size=8,
        gradient_accumulation_steps=4,
        learning_rate=2e-3,
        num_train_epochs=2,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    Smoothing(model=LlamaForCausalLM(config), args=arguments, train_dataset=Counting(640)).train()


if __name__ == "__main__":
    main()
