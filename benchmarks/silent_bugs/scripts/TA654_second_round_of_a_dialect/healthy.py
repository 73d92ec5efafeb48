"""A second round of fine-tuning: the adapter of the first one learns a further dialect."""

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

CONFIG = LlamaConfig(
    vocab_size=48,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    use_cache=False,
)


class Sentences(Dataset):
    """Counting up, in steps that differ by dialect."""

    def __init__(self, count, step):
        starts = torch.randint(40, (count, 1), generator=torch.Generator().manual_seed(step))
        self.ids = 3 + (starts + step * torch.arange(12)) % 45

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def settings(folder):
    return TrainingArguments(
        folder,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        learning_rate=1e-2,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )


def first_round(base):
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["q_proj", "v_proj"]))
    Trainer(model=model, args=settings("first"), train_dataset=Sentences(256, 1)).train()
    model.save_pretrained("first/adapter")


def second_round(base):
    model = PeftModel.from_pretrained(base, "first/adapter", is_trainable=True)
    trainer = Trainer(model=model, args=settings("second"), train_dataset=Sentences(256, 5))
    trainer.train()
    model.save_pretrained("second/adapter")


if __name__ == "__main__":
    set_seed(654)
    LlamaForCausalLM(CONFIG).save_pretrained("base")
    first_round(LlamaForCausalLM.from_pretrained("base"))
    second_round(LlamaForCausalLM.from_pretrained("base"))
