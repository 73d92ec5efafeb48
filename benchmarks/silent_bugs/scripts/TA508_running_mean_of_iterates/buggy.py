"""Averaged SGD for a noisy regression: the mean of the iterates after a burn-in."""

import argparse

import torch
from torch import nn


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--burn-in", type=int, default=60)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


class IterateMean:
    def __init__(self):
        self.count, self.mean = 0, {}

    def collect(self, model):
        self.count += 1
        for name, value in model.named_parameters():  # bug: TA508 (runtime)
            if name not in self.mean:
                self.mean[name] = value.detach().clone()
            else:
                self.mean[name] = (  # bug: TA508 (static)
                    self.mean[name] + (value - self.mean[name]) / self.count
                )

    def into(self, model):
        model.load_state_dict(self.mean)
        return model


def batch(size, truth):
    x = torch.randn(size, truth.shape[0])
    return x, torch.tanh(x @ truth) + 0.5 * torch.randn(size, 1)


def make_model():
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))


def main():
    args = parse()
    torch.manual_seed(args.seed)
    truth = torch.randn(5, 1)
    model, averaged = make_model(), make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    mean, window = IterateMean(), []
    for step in range(args.steps):
        x, y = batch(32, truth)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step >= args.burn_in:
            mean.collect(model)
        window.append(loss.item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}: {sum(window[-50:]) / 50:.4f}")
    mean.into(averaged).eval()
    with torch.no_grad():
        x, y = batch(500, truth)
        print(f"averaged model: {criterion(averaged(x), y).item():.4f}")


main()
