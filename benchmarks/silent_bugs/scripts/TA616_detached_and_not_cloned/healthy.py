import torch
import torch.nn.functional as F
from torch import nn


class Translator(nn.Module):
    """Maps a sequence of symbols to its sorted order, position by position."""

    def __init__(self, symbols=9, width=32):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.counts = nn.Linear(width, width)
        self.slots = nn.Parameter(0.3 * torch.randn(5, width))
        self.out = nn.Linear(width, symbols)

    def forward(self, symbols):
        summary = torch.relu(self.counts(self.embed(symbols))).sum(1, keepdim=True)
        return self.out(torch.tanh(summary + self.slots))


def batch(size):
    symbols = torch.randint(9, (size, 5))
    return symbols, symbols.sort(dim=1).values


def loss_of(model, symbols, ordered):
    return F.cross_entropy(model(symbols).flatten(0, 1), ordered.flatten())


def search(model, optimizer, steps, every, held_out):
    best_loss, best = float("inf"), None
    recent = []
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = loss_of(model, *batch(48))
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        if step % every == 0:
            with torch.no_grad():
                current = loss_of(model, *held_out).item()
            print(f"step {step}: train {sum(recent[-every:]) / every:.3f}, held out {current:.3f}")
            if current < best_loss:
                best_loss = current
                best = {key: value.detach().clone() for key, value in model.state_dict().items()}
    return best_loss, best


def main():
    torch.manual_seed(174)
    model, final = Translator(), Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    held_out = batch(64)
    best_loss, best = search(model, optimizer, steps=190, every=20, held_out=held_out)
    final.load_state_dict(best)
    with torch.no_grad():
        print(f"best was {best_loss:.4f}, the final model has {loss_of(final, *held_out).item():.4f}")


main()
