"""REINFORCE for a contextual bandit with rare large rewards."""

import torch
from torch import nn
from torch.distributions import Categorical

ARMS, CONTEXT = 4, 6


class Policy(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(CONTEXT, width), nn.ReLU(), nn.Linear(width, ARMS))

    def forward(self, context):
        return Categorical(logits=self.net(context))


class Bandit:
    def __init__(self, jackpot=400.0):
        self.value = torch.randn(CONTEXT, ARMS)
        self.jackpot, self.played = jackpot, 0

    def reward(self, context, arm):
        self.played += 1
        reward = torch.tanh(context @ self.value).gather(1, arm[:, None])[:, 0] + 0.1 * torch.randn(len(arm))
        if self.played % 60 == 0:
            reward[torch.randint(len(arm), (2,))] += self.jackpot
        return reward


def main(updates=240, batch=64, lr=0.05):
    torch.manual_seed(185)
    bandit, policy = Bandit(), Policy()
    optimizer = torch.optim.SGD(policy.parameters(), lr=lr, momentum=0.8)
    baseline, rewards = 0.0, []
    for update in range(updates):
        context = torch.randn(batch, CONTEXT)
        distribution = policy(context)
        arm = distribution.sample()
        reward = bandit.reward(context, arm)
        loss = -((reward - baseline) * distribution.log_prob(arm)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # bug: TA617
        baseline = 0.95 * baseline + 0.05 * reward.median().item()
        rewards.append(reward.median().item())
        if (update + 1) % 40 == 0:
            print(f"{update + 1}: median reward {sum(rewards[-40:]) / 40:.3f}")


main()
