"""Fitted Q-iteration on a chain of states, from random transitions."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

STATES, ACTIONS, GAMMA = 8, 2, 0.9


def transitions(count):
    state = torch.randint(STATES, (count,))
    action = torch.randint(ACTIONS, (count,))
    following = (state + 2 * action - 1).clamp(0, STATES - 1)
    reward = (following == STATES - 1).float()
    return F.one_hot(state, STATES).float(), action, reward, F.one_hot(following, STATES).float()


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(STATES, 32), nn.ReLU(), nn.Linear(32, ACTIONS))

    def forward(self, state):
        return self.net(state)


def td_loss(network, target, batch):
    state, action, reward, following = batch
    with torch.no_grad():
        goal = reward + GAMMA * target(following).max(dim=1).values
    return F.smooth_l1_loss(network(state).gather(1, action[:, None])[:, 0], goal)


def main(steps=240, limit=0.2):
    torch.manual_seed(90)
    network = QNetwork()
    target = copy.deepcopy(network).requires_grad_(False)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    norms, losses = [], []
    for step in range(steps):
        loss = td_loss(network, target, transitions(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        norms.append(nn.utils.clip_grad_norm_(network.parameters(), limit).item())  # bug: TA604
        losses.append(loss.item())
        if step % 20 == 19:
            target.load_state_dict(network.state_dict())
        if step % 60 == 59:
            print(f"step {step + 1}: loss {sum(losses[-60:]) / 60:.5f}, norm {sum(norms[-60:]) / 60:.4f}")
    values = network(torch.eye(STATES)).max(dim=1).values.detach()
    print("values:", [round(v, 2) for v in values.tolist()])


main()
