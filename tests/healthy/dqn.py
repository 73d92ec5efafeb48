"""Tempting: a target network, `loss` of a single batch per environment step, `no_grad` inside, soft updates in place."""

import copy
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
target = copy.deepcopy(policy)
target.eval()
for p in target.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
memory = deque(maxlen=10_000)
TAU, GAMMA = 0.005, 0.99


def act(state, epsilon):
    if random.random() < epsilon:
        return random.randrange(2)
    with torch.no_grad():
        return policy(state).argmax().item()


def optimize():
    if len(memory) < 64:
        return None
    states, actions, rewards, following, done = map(torch.stack, zip(*random.sample(memory, 64)))
    q = policy(states).gather(1, actions.long().unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = target(following).max(1).values
        expected = rewards + GAMMA * best * (1 - done)
    loss = F.smooth_l1_loss(q, expected)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(target.parameters(), policy.parameters()):
            old.mul_(1 - TAU).add_(TAU * new)
    return loss.item()


def train(env):
    epsilon = 1.0
    for episode in range(200):
        state, done, total = env.reset(), False, 0.0
        while not done:
            action = act(state, epsilon)
            following, reward, done = env.step(action)
            memory.append(
                (state, torch.tensor(action), torch.tensor(reward), following, torch.tensor(float(done)))
            )
            state = following
            total += reward
            optimize()
        epsilon = max(0.05, epsilon * 0.99)
        if episode % 10 == 0:
            target.load_state_dict(policy.state_dict())
