"""A policy that learns from rewards: its loss may be of either sign."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for _ in range(5):
    states = torch.randn(16, 4)
    chosen = torch.distributions.Categorical(logits=policy(states))
    actions = chosen.sample()
    rewards = (actions == (states[:, 0] > 0)).float()
    loss = -(chosen.log_prob(actions) * (rewards - rewards.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
