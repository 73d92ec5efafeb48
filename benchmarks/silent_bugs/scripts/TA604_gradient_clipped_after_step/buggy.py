"""Recurrent training with clipping."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    rnn = nn.RNN(5, 20, batch_first=True)
    head = nn.Linear(20, 1)
    model = nn.ModuleDict({"rnn": rnn, "head": head})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        x = torch.randn(16, 30, 5)
        optimizer.zero_grad()
        outputs, _ = model["rnn"](x)
        loss = nn.functional.mse_loss(model["head"](outputs[:, -1]), 10 * x.sum(dim=(1, 2)).unsqueeze(1))
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # bug: TA604
    print(loss.item())


if __name__ == "__main__":
    main()
