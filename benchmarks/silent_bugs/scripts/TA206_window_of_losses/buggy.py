"""Behaviour cloning of a pendulum controller. Stops when the recent losses are small."""

from collections import deque

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.torque = nn.Linear(hidden, 1)

    def forward(self, state):
        return 2 * torch.tanh(self.torque(self.net(state)))


def expert(state):
    cosine, sine, speed = state.unbind(1)
    return (-4 * sine - 0.8 * speed * (1 + 0.2 * cosine)).clamp(-2, 2).unsqueeze(1)


def states(n):
    angle = 6.28 * torch.rand(n)
    return torch.stack([angle.cos(), angle.sin(), torch.randn(n)], dim=1)


def clone(max_steps=250, patience_loss=0.002):
    torch.manual_seed(29)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    recent = deque(maxlen=100)
    for step in range(max_steps):
        state = states(64)
        error = nn.functional.smooth_l1_loss(policy(state), expert(state))
        optimizer.zero_grad()
        error.backward()  # bug: TA206 (runtime)
        optimizer.step()
        recent.append(error)  # bug: TA206 (static)
        average = sum(recent) / len(recent)
        if step % 50 == 0:
            print(step, float(average))
        if len(recent) == recent.maxlen and average < patience_loss:
            break
    return policy


clone()
