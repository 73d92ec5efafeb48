"""Policy improvement with a penalty on the distance from the policy that acted."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


class Actor(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observations, 32), nn.Tanh(), nn.Linear(32, actions))

    def forward(self, observations):
        return Categorical(logits=self.net(observations))


def collect(actor, best, count):
    observations = torch.randn(count, best.shape[0])
    with torch.no_grad():
        behaviour = actor(observations)
        actions = behaviour.sample()
    reward = (actions == (observations @ best).argmax(1)).float()
    return observations, actions, reward, behaviour


def improve(actor, optimizer, data, penalty, epochs):
    observations, actions, reward, old = data
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    old_logs = old.log_prob(actions)
    for _ in range(epochs):
        new = actor(observations)
        ratio = (new.log_prob(actions) - old_logs).exp()
        gain = (ratio * advantage).mean()
        distance = F.kl_div(new.logits, old.probs, reduction="batchmean")
        loss = penalty * distance - gain
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        optimizer.step()
    return distance.item()


def main():
    torch.manual_seed(40)
    best = torch.randn(5, 4)
    actor = Actor(5, 4)
    optimizer = torch.optim.Adam(actor.parameters(), lr=5e-3)
    for iteration in range(40):
        acting = copy.deepcopy(actor).eval()
        data = collect(acting, best, 128)
        distance = improve(actor, optimizer, data, penalty=0.5, epochs=3)
        if iteration % 8 == 7:
            print(f"{iteration + 1}: reward {data[2].mean().item():.3f} distance {distance:.4f}")


main()
