"""A policy that is trained by hand-written cross entropy on widely spread scores."""

import torch
from torch import nn


def negative_log_likelihood(scores, actions):
    log_probabilities = torch.log_softmax(scores, dim=-1)
    return -log_probabilities.gather(1, actions.unsqueeze(1)).mean()


class Policy(nn.Module):
    def __init__(self, states=6, actions=4, temperature=0.01):
        super().__init__()
        self.net = nn.Linear(states, actions)
        self.temperature = temperature

    def forward(self, state):
        return self.net(state) / self.temperature


def main():
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-4)
    for step in range(30):
        states = torch.randn(32, 6)
        actions = states[:, :4].argmax(dim=1)
        loss = negative_log_likelihood(policy(states), actions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
