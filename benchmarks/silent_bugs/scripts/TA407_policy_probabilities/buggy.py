"""REINFORCE with a running baseline on a contextual bandit."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Bandit:
    """The best arm is the largest of a linear map of the context."""

    def __init__(self, arms, features):
        self.map = torch.randn(features, arms)

    def contexts(self, count):
        return torch.randn(count, self.map.shape[0])

    def pull(self, contexts, arms):
        values = contexts @ self.map
        return (arms == values.argmax(dim=1)).float()


class Policy(nn.Module):
    def __init__(self, features, arms):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 32), nn.Tanh())
        self.actor = nn.Linear(32, arms)

    def forward(self, contexts):
        return F.softmax(self.actor(self.body(contexts)), dim=-1)


def update(policy, optimizer, bandit, baseline, batch):
    contexts = bandit.contexts(batch)
    probabilities = policy(contexts)
    arms = torch.multinomial(probabilities.detach(), 1).squeeze(1)
    reward = bandit.pull(contexts, arms)
    chosen = F.nll_loss(probabilities, arms, reduction="none")  # bug: TA407
    loss = ((reward - baseline) * chosen).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return reward.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    options = parser.parse_args()
    torch.manual_seed(33)
    bandit = Bandit(arms=5, features=6)
    policy = Policy(features=6, arms=5)
    optimizer = torch.optim.Adam(policy.parameters(), lr=options.lr)
    baseline = 0.2
    for step in range(options.steps):
        gained = update(policy, optimizer, bandit, baseline, options.batch)
        baseline = 0.9 * baseline + 0.1 * gained
        if step % 40 == 39:
            print(f"step {step + 1}: reward {baseline:.3f}")


main()
