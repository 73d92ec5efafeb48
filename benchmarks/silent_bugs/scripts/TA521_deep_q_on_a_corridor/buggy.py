"""Q-learning in a corridor of twelve: left or right, a reward at its end."""

import random
from collections import deque

import torch
from torch import nn

LENGTH, GAMMA = 12, 0.95

torch.manual_seed(5)
random.seed(5)
net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
memory = deque(maxlen=2000)


def move(place, action):
    place = max(0, place + (1 if action else -1))
    return place, float(place == LENGTH), place == LENGTH


def choose(place, epsilon):
    if random.random() < epsilon:
        return random.randrange(2)
    with torch.no_grad():
        return net(torch.tensor([[place / LENGTH]])).argmax().item()


def replay(size=32):
    state, action, reward, following, over = zip(*random.sample(memory, size))
    state = torch.tensor(state).unsqueeze(1) / LENGTH
    following = torch.tensor(following).unsqueeze(1) / LENGTH
    action, reward = torch.tensor(action).unsqueeze(1), torch.tensor(reward)
    over = torch.tensor(over, dtype=torch.float)

    chosen = net(state).gather(1, action).squeeze(1)
    best = net(following).max(1)[0]
    expected = reward + GAMMA * best * (1 - over)  # bug: TA521 (static)
    error = expected - chosen
    loss = (error**2).mean()  # bug: TA521 (runtime)

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for episode in range(12):
    place, over, steps = 0, False, 0
    while not over and steps < 40:
        action = choose(place, 1.0 - episode / 15)
        following, reward, over = move(place, action)
        memory.append((place, action, reward, following, over))
        place, steps = following, steps + 1
        if len(memory) >= 64:
            loss = replay()
    print(episode, steps)
