"""Continues sequences of notes; Lightning shows some after each epoch."""

import lightning as L
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

PAD, END, NOTES = 0, 1, 24


def melodies(count):
    found = []
    for _ in range(count):
        start, step, length = (int(torch.randint(low, high, ())) for low, high in ((0, 12), (1, 4), (6, 15)))
        found.append(torch.cat([2 + (start + step * torch.arange(length)) % NOTES, torch.tensor([END])]))
    return found


def for_training(rows):
    ids = pad_sequence(rows, batch_first=True, padding_value=PAD)
    mask = (ids != PAD).long()
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def for_generation(rows):
    beginnings = [row[: len(row) // 2] for row in rows]
    ids = pad_sequence(beginnings, batch_first=True, padding_value=PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


class Composer(L.LightningModule):
    def __init__(self):
        super().__init__()
        config = LlamaConfig(
            vocab_size=NOTES + 2,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            pad_token_id=PAD,
            bos_token_id=None,
            eos_token_id=END,
        )
        self.model = LlamaForCausalLM(config)

    def training_step(self, batch, batch_idx):
        return self.model(**batch).loss

    def validation_step(self, batch, batch_idx):
        out = self.model.generate(**batch, max_new_tokens=8, do_sample=False)  # bug: TA159 (runtime)
        self.print(out[0].tolist())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def main():
    L.seed_everything(19)
    train = DataLoader(melodies(480), batch_size=16, shuffle=True, collate_fn=for_training)
    held_out = DataLoader(melodies(16), batch_size=16, collate_fn=for_generation)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Composer(), train, held_out)


if __name__ == "__main__":
    main()
