import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {"symbols": 10, "width": 24, "chunk": 8, "length": 400, "streams": 12, "lr": 1e-2}


class Cell(nn.Module):
    """A minimal gated cell, written by hand."""

    def __init__(self, symbols, width):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.gate = nn.Linear(2 * width, width)
        self.update = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, symbols)

    def forward(self, symbol, state):
        joined = torch.cat([self.embed(symbol), state], dim=1)
        gate = torch.sigmoid(self.gate(joined))
        state = gate * state + (1 - gate) * torch.tanh(self.update(joined))
        return self.out(state), state


def streams(config):
    """Each symbol is the sum of the two before it."""
    rows = [torch.randint(config["symbols"], (config["streams"],)) for _ in range(2)]
    for _ in range(config["length"] - 1):
        rows.append((rows[-1] + rows[-2]) % config["symbols"])
    return torch.stack(rows)


def main(config):
    torch.manual_seed(16)
    data = streams(config)
    cell = Cell(config["symbols"], config["width"])
    optimizer = torch.optim.Adam(cell.parameters(), lr=config["lr"])
    state = torch.zeros(config["streams"], config["width"])
    loss, logged = 0.0, []
    for t in range(config["length"]):
        logits, state = cell(data[t], state)  # bug: TA507 (static)
        loss = loss + F.cross_entropy(logits, data[t + 1]) / config["chunk"]
        if (t + 1) % config["chunk"] == 0:
            optimizer.zero_grad()
            loss.backward()  # bug: TA507 (runtime)
            nn.utils.clip_grad_norm_(cell.parameters(), 1.0)
            optimizer.step()
            logged.append(loss.item())
            loss = 0.0
            if len(logged) % 10 == 0:
                print(f"{t + 1} symbols: {sum(logged[-10:]) / 10:.3f}")


if __name__ == "__main__":
    main(CONFIG)
