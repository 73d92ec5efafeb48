"""A language model of digits, trained on several processes with a linear schedule."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

EPOCHS = 3


def digits(count, length=16):
    start = torch.randint(10, (count, 1))
    step = torch.randint(1, 4, (count, 1))
    return (start + step * torch.arange(length)) % 10


def main():
    torch.manual_seed(662)
    accelerator = Accelerator(cpu=True)
    config = GPT2Config(
        vocab_size=10, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(digits(640), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    total = EPOCHS * len(loader)
    schedule = get_linear_schedule_with_warmup(  # bug: TA662
        optimizer, num_warmup_steps=total // 10, num_training_steps=total
    )
    schedule = accelerator.prepare(schedule)

    for epoch in range(EPOCHS):
        for ids in loader:
            loss = model(input_ids=ids, labels=ids).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}, lr {schedule.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main()
