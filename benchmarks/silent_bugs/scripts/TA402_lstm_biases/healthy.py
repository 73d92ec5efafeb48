"""Classifies short sequences by an LSTM; biases get no decay."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_


class Tagger(nn.Module):
    def __init__(self, features=4, hidden=24, classes=3):
        super().__init__()
        self.rnn = nn.LSTM(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states.mean(dim=1))


def split_parameters(model):
    decay, plain = [], []
    for name, parameter in model.named_parameters():
        if "bias" in name:
            plain.append(parameter)
        else:
            decay.append(parameter)
    return decay, plain


def batch(size=24, steps=10):
    labels = torch.randint(3, (size,))
    drift = (labels.float() - 1).view(-1, 1, 1)
    return torch.randn(size, steps, 4) + drift, labels


def main():
    torch.manual_seed(7)
    model = Tagger()
    decay, plain = split_parameters(model)
    settings = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(settings, lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, 1.0, total_iters=20)
    for step in range(100):
        sequences, labels = batch()
        loss = nn.functional.cross_entropy(model(sequences), labels)
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}")


main()
