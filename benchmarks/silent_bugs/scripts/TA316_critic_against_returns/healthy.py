"""Advantage actor-critic on a chain of cells: walk right for the reward."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

CELLS, HORIZON, WALKERS, GAMMA = 7, 12, 16, 0.95


class ActorCritic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Linear(CELLS, hidden)
        self.policy = nn.Linear(hidden, 2)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, cells):
        h = torch.tanh(self.body(F.one_hot(cells, CELLS).float()))
        return self.policy(h), self.critic(h).squeeze(-1)


def rollout(net):
    cell = torch.randint(CELLS - 1, (WALKERS,))
    cells, actions, rewards = [], [], []
    for _ in range(HORIZON):
        with torch.no_grad():
            logits, _ = net(cell)
        action = Categorical(logits=logits).sample()
        following = (cell + 2 * action - 1).clamp(0, CELLS - 1)
        cells.append(cell)
        actions.append(action)
        rewards.append((following == CELLS - 1).float() - 0.01)
        cell = following
    returns, future = [], torch.zeros(WALKERS)
    for reward in reversed(rewards):
        future = reward + GAMMA * future
        returns.insert(0, future)
    return torch.cat(cells), torch.cat(actions), torch.cat(returns)


def update(net, optimizer):
    cells, actions, returns = rollout(net)
    logits, values = net(cells)
    advantage = returns - values.detach().flatten()
    chosen = Categorical(logits=logits)
    policy_loss = -(chosen.log_prob(actions) * advantage).mean()
    value_loss = F.smooth_l1_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return returns.mean().item(), value_loss.item()


def main():
    torch.manual_seed(55)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for iteration in range(100):
        mean_return, value_loss = update(net, optimizer)
        if iteration % 20 == 0:
            print(f"{iteration:3d} return {mean_return:.3f} value loss {value_loss:.4f}")


if __name__ == "__main__":
    main()
