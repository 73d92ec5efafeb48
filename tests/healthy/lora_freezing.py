"""Tempting: only some parameters are trained, chosen by name after the freezing, and low-rank weights start at zero."""

import math

import torch
from torch import nn


class LoRALinear(nn.Linear):
    def __init__(self, inputs, outputs, rank=8):
        super().__init__(inputs, outputs)
        self.lora_A = nn.Parameter(torch.empty(rank, inputs))
        self.lora_B = nn.Parameter(torch.zeros(outputs, rank))
        self.scaling = 2.0
        self.merged = False
        self.reset_lora()

    def reset_lora(self):
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x):
        base = nn.functional.linear(x, self.weight, self.bias)
        return base if self.merged else base + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling

    def train(self, mode=True):
        super().train(mode)
        if mode and self.merged:
            self.weight.data -= self.lora_B @ self.lora_A * self.scaling
            self.merged = False
        elif not mode and not self.merged:
            self.weight.data += self.lora_B @ self.lora_A * self.scaling
            self.merged = True
        return self


def mark_only_lora_as_trainable(model):
    for name, parameter in model.named_parameters():
        parameter.requires_grad = "lora_" in name


model = nn.Sequential(LoRALinear(16, 32), nn.ReLU(), LoRALinear(32, 4))
mark_only_lora_as_trainable(model)
model[-1].bias.requires_grad_(True)
trainable = [p for p in model.parameters() if p.requires_grad]
print(sum(p.numel() for p in trainable))
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
for step in range(100):
    loss = nn.functional.cross_entropy(model(torch.randn(32, 16)), torch.randint(0, 4, (32,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save({k: v for k, v in model.state_dict().items() if "lora_" in k}, "lora.pt")
