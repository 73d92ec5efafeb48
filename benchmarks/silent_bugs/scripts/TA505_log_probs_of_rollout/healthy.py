"""Advantage actor-critic for a line of cells: walk to the right end."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

CELLS, GAMMA = 6, 0.9


class Walk:
    """Eight walkers at once; reward 1 at the right end, then back to the start."""

    def __init__(self, walkers=8):
        self.position = torch.zeros(walkers, dtype=torch.long)

    def observe(self):
        return F.one_hot(self.position, CELLS).float()

    def step(self, action):
        self.position = (self.position + 2 * action - 1).clamp(min=0)
        done = self.position >= CELLS - 1
        self.position = torch.where(done, 0, self.position)
        return done.float(), done.float()


actor_net = lambda: nn.Sequential(nn.Linear(CELLS, 24), nn.Tanh(), nn.Linear(24, 2))
critic_net = lambda: nn.Sequential(nn.Linear(CELLS, 24), nn.Tanh(), nn.Linear(24, 1))


def rollout(env, actor, length):
    states, actions, log_probs, rewards, dones = [], [], [], [], []
    with torch.no_grad():
        for _ in range(length):
            state = env.observe()
            policy = Categorical(logits=actor(state))
            action = policy.sample()
            reward, done = env.step(action)
            states.append(state)
            actions.append(action)
            log_probs.append(policy.log_prob(action))
            rewards.append(reward)
            dones.append(done)
    return [torch.stack(items) for items in (states, actions, log_probs, rewards, dones)]


def returns_of(rewards, dones, last):
    result, following = torch.zeros_like(rewards), last
    for t in reversed(range(len(rewards))):
        following = rewards[t] + GAMMA * (1 - dones[t]) * following
        result[t] = following
    return result


def main(updates=120, length=10):
    torch.manual_seed(14)
    env, actor, critic = Walk(), actor_net(), critic_net()
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=5e-3)
    recent = []
    for update in range(updates):
        states, actions, log_probs, rewards, dones = rollout(env, actor, length)
        with torch.no_grad():
            last = critic(env.observe())[:, 0]
        returns = returns_of(rewards, dones, last)
        values = critic(states)[..., 0]
        advantages = (returns - values).detach()
        log_probs = Categorical(logits=actor(states)).log_prob(actions)
        actor_loss = -(log_probs * advantages).mean()
        critic_loss = F.mse_loss(values, returns)
        loss = actor_loss + 0.5 * critic_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(rewards.sum().item())
        if (update + 1) % 30 == 0:
            print(f"update {update + 1}: {sum(recent[-30:]) / 30:.2f} goals per rollout")


if __name__ == "__main__":
    main()
