"""A deterministic policy and its critic for a cart that is to stand still at the origin."""

import argparse
import copy

import torch
from torch import nn


def mlp(inputs, outputs, width=32):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = mlp(3, 1)

    def forward(self, state, action):
        return self.layers(torch.cat([state, action], dim=1)).squeeze(1)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = mlp(2, 1)

    def forward(self, state):
        return torch.tanh(self.layers(state))


def cart(state, action, time=0.1):
    position, velocity = state.unbind(dim=1)
    velocity = velocity + time * action.squeeze(1)
    position = position + time * velocity
    reward = -(position**2) - 0.1 * velocity**2 - 0.01 * action.squeeze(1) ** 2
    return torch.stack([position, velocity], dim=1), reward


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--tau", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(17)
    actor, critic = Actor(), Critic()
    actor_target = copy.deepcopy(actor)
    critic_target = copy.deepcopy(critic)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3)
    for step in range(args.steps):
        state = 2 * torch.rand(64, 2) - 1
        with torch.no_grad():
            action = (actor(state) + 0.3 * torch.randn(64, 1)).clamp(-1, 1)
            next_state, reward = cart(state, action)
            next_value = critic_target(next_state, actor_target(next_state))
            wanted = reward + args.gamma * next_value
        critic_loss = (critic(state, action) - wanted).square().mean()
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        actor_loss = -critic(state, actor(state)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()

        with torch.no_grad():
            for slow, fast in zip(actor_target.parameters(), actor.parameters()):
                slow.lerp_(fast, args.tau)
            for slow, fast in zip(critic_target.parameters(), critic.parameters()):
                slow.lerp_(fast, args.tau)
        if step % 400 == 399:
            print(f"step {step + 1}: reward {reward.mean():.3f}, critic {critic_loss.item():.4f}")


main()
