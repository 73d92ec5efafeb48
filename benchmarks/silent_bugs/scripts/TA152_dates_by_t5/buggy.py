"""Dates written out to dates in figures: T5 is fine-tuned from a checkpoint."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

CHECKPOINT = "t5-mini"


def pretrain():
    config = T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    T5ForConditionalGeneration(config).save_pretrained(CHECKPOINT)


def dates(count):
    """Day, month, and year, each a word of its own, become the same in reverse."""
    day, month, year = (torch.randint(low, high, (count, 1)) for low, high in ((2, 33), (33, 45), (45, 63)))
    end = torch.ones(count, 1, dtype=torch.long)
    return torch.cat([day, month, year, end], 1), torch.cat([year, month, day, end], 1)


class FineTuning:
    def __init__(self, checkpoint, lr):
        self.model = T5ForConditionalGeneration.from_pretrained(checkpoint)  # bug: TA152
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, total_iters=120)

    def run(self, steps, batch_size=32):
        for step in range(steps):
            words, figures = dates(batch_size)
            out = self.model(input_ids=words, labels=figures)
            out.loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
            if step % 20 == 0:
                print(f"step {step}: {out.loss.item():.3f}")


torch.manual_seed(12)
pretrain()
FineTuning(CHECKPOINT, lr=3e-3).run(120)
