"""Marks names in letters: a tagger on a published encoder, with LoRA."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForTokenClassification, RobertaConfig, RobertaModel

TAGS = ["O", "B-PER", "I-PER"]


def published(folder):
    """The encoder, as it comes without a head."""
    config = RobertaConfig(
        vocab_size=120,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        pad_token_id=1,
    )
    RobertaModel(config).save_pretrained(folder)
    return folder


def letters(count, length=16):
    ids = torch.randint(20, 120, (count, length))
    first = ids >= 100  # title
    tags = torch.where(first, 1, 0)
    tags[:, 1:][first[:, :-1] & ~first[:, 1:]] = 2
    return ids, tags


def main():
    torch.manual_seed(653)
    encoder = published("encoder")
    model = AutoModelForTokenClassification.from_pretrained(encoder, num_labels=len(TAGS))
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["query", "value"], lora_dropout=0.05)
    model = get_peft_model(model, config)  # bug: TA653
    model.print_trainable_parameters()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-3)
    model.train()
    for step in range(100):
        ids, tags = letters(16)
        loss = model(input_ids=ids, labels=tags).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step}: {loss.item():.3f}")
    model.save_pretrained("adapter")


if __name__ == "__main__":
    main()
