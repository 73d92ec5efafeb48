"""PPO with a clipped ratio for a bandit with contexts and actions of two dimensions."""

import argparse

import torch
from torch import nn
from torch.distributions import Independent, Normal


class Agent:
    def __init__(self, contexts, actions, lr, clip):
        self.mean = nn.Sequential(nn.Linear(contexts, 32), nn.ReLU(), nn.Linear(32, actions))
        self.baseline = nn.Sequential(nn.Linear(contexts, 32), nn.ReLU(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((actions,), -0.5))
        parameters = [*self.mean.parameters(), *self.baseline.parameters(), self.log_std]
        self.optimizer = torch.optim.Adam(parameters, lr=lr)
        self.clip = clip

    def policy(self, contexts):
        return Independent(Normal(self.mean(contexts), self.log_std.exp()), 1)

    def evaluate(self, contexts, actions):
        return self.policy(contexts).log_prob(actions), self.baseline(contexts).squeeze(-1)

    def update(self, contexts, actions, old_log_probs, rewards):
        log_probs, values = self.evaluate(contexts, actions)
        advantages = rewards - values.detach()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratio = torch.exp(log_probs - old_log_probs)
        clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
        gain = torch.min(ratio * advantages, clipped * advantages)
        loss = -gain.mean() + 0.5 * (rewards - values).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def reward_of(contexts, actions):
    return -(actions - contexts[:, :2].sin()).square().sum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(3)
    agent = Agent(4, 2, args.lr, clip=0.2)
    for number in range(args.rounds):
        contexts = torch.randn(args.batch, 4)
        with torch.no_grad():
            policy = agent.policy(contexts)
            actions = policy.sample()
            old = policy.log_prob(actions)
        rewards = reward_of(contexts, actions)
        for _ in range(4):
            loss = agent.update(contexts, actions, old, rewards)
        print(f"round {number}: reward {rewards.mean():.3f}, loss {loss:.3f}")


main()
