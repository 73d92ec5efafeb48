"""One-step actor-critic in a corridor: the goal is at the right end, and every step costs a little."""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical

LENGTH = 7


class Corridor:
    def reset(self):
        self.position, self.steps = LENGTH // 2, 0
        return self.observe()

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.position), LENGTH).float()

    def step(self, action):
        self.position = max(0, self.position + (1 if action else -1))
        self.steps += 1
        at_goal = self.position == LENGTH - 1
        return self.observe(), 1.0 if at_goal else -0.02, at_goal or self.steps == 30


class ActorCritic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LENGTH, width), nn.Tanh())
        self.action_head, self.value_head = nn.Linear(width, 2), nn.Linear(width, 1)

    def forward(self, state):
        hidden = self.body(state)
        return Categorical(logits=self.action_head(hidden)), self.value_head(hidden)[0]


def losses(log_prob, value, target):
    advantage = target - value
    actor_loss = -log_prob * advantage  # bug: TA542
    return actor_loss, advantage.square()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=12)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(11)
    environment, model = Corridor(), ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for episode in range(args.episodes):
        state, done = environment.reset(), False
        while not done:
            policy, value = model(state)
            action = policy.sample()
            state, reward, done = environment.step(action.item())
            with torch.no_grad():
                target = reward + args.gamma * model(state)[1] * (not done)
            actor_loss, critic_loss = losses(policy.log_prob(action), value, target)
            optimizer.zero_grad()
            (actor_loss + 0.5 * critic_loss).backward()
            optimizer.step()
        print(f"episode {episode}: {environment.steps} steps, at {environment.position}")


main()
