"""One-step actor-critic for reaching a point on a line."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal


class PolicyAndValue(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh())
        self.mean, self.value = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, state):
        hidden = self.body(state)
        return Normal(self.mean(hidden), 0.4), self.value(hidden)[:, 0]


class Agent:
    def __init__(self, lr=0.02):
        self.network = PolicyAndValue()
        self.policy_optimizer = torch.optim.SGD(self.network.parameters(), lr=lr, momentum=0.9)
        self.value_optimizer = self.policy_optimizer

    def update(self, state, act):
        distribution, value = self.network(state)
        action = distribution.sample()
        reward = act(state, action)
        advantage = reward - value.detach()
        policy_loss = -(distribution.log_prob(action)[:, 0] * advantage).mean()
        value_loss = F.mse_loss(value, reward)
        self.policy_optimizer.zero_grad()
        self.value_optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss).backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.policy_optimizer.step()
        self.value_optimizer.step()  # bug: TA626
        return reward.mean().item(), value_loss.item()


def reach(state, action):
    place, goal = state[:, 0], state[:, 1]
    return -(place + action[:, 0] - goal).abs()


def main(updates=240, batch=64):
    torch.manual_seed(244)
    agent = Agent()
    rewards, errors = [], []
    for update in range(1, updates + 1):
        reward, error = agent.update(torch.rand(batch, 2) * 2 - 1, reach)
        rewards.append(reward)
        errors.append(error)
        if update % 40 == 0:
            print(f"{update}: reward {sum(rewards[-40:]) / 40:.3f}, value loss {sum(errors[-40:]) / 40:.4f}")


if __name__ == "__main__":
    main()
