"""Scores of essays: a head for a language model whose adapter was trained on other essays before."""

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import AutoModel, Qwen2Config, Qwen2Model


def earlier_work():
    """What the earlier project left behind: a base model and an adapter for it."""
    config = Qwen2Config(
        vocab_size=80,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    base = Qwen2Model(config)
    base.save_pretrained("qwen-base")
    get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"])).save_pretrained(
        "essays-adapter"
    )


class Grader(nn.Module):
    def __init__(self):
        super().__init__()
        base = AutoModel.from_pretrained("qwen-base")
        self.reader = PeftModel.from_pretrained(base, "essays-adapter", is_trainable=True)
        self.score = nn.Linear(base.config.hidden_size, 1)

    def forward(self, ids, mask):
        hidden = self.reader(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        return self.score((hidden * weights).sum(1) / weights.sum(1)).squeeze(-1)


def essays(count, length=20):
    ids = torch.randint(1, 80, (count, length))
    lengths = torch.randint(8, length + 1, (count, 1))
    mask = (torch.arange(length) < lengths).long()
    return ids * mask, mask, ((ids > 60) * mask).sum(1) / lengths.squeeze(1)


torch.manual_seed(54)
earlier_work()
grader = Grader()
optimizer = torch.optim.AdamW(grader.parameters(), lr=2e-3)
grader.train()
for step in range(90):
    ids, mask, grade = essays(24)
    loss = nn.functional.mse_loss(grader(ids, mask), grade)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(grader.parameters(), 1.0)
    optimizer.step()
    if step % 15 == 0:
        print(step, round(loss.item(), 4))
