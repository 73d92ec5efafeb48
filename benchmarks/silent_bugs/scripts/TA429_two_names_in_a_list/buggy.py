"""Deep Q-learning on a corridor with a goal at its end."""

import random

import torch
from torch import nn

LENGTH, GAMMA = 8, 0.9


def q_network():
    return nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))


def encode(places):
    return nn.functional.one_hot(places, LENGTH).float()


class Corridor:
    def __init__(self):
        self.place = 0

    def step(self, action):
        before = self.place
        self.place = max(0, before + (1 if action else -1))
        done = self.place == LENGTH - 1
        after = self.place
        if done:
            self.place = 0
        return before, action, float(done), after, float(done)


def act(online, place, explore):
    if random.random() < explore:
        return random.randrange(2)
    with torch.no_grad():
        return int(online(encode(torch.tensor([place]))).argmax())


def main(steps=300, sync=25):
    random.seed(3)
    torch.manual_seed(79)
    online, target = [q_network()] * 2  # bug: TA429 (static)
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-3)
    corridor, memory = Corridor(), []
    for _ in range(400):
        memory.append(corridor.step(random.randrange(2)))
    average = 0.0
    for step in range(steps):
        memory.append(corridor.step(act(online, corridor.place, explore=0.3)))
        before, action, reward, after, done = (
            torch.tensor(column) for column in zip(*random.sample(memory, 32))
        )
        with torch.no_grad():
            value = reward + GAMMA * (1 - done) * target(encode(after)).amax(dim=1)
        chosen = online(encode(before)).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(chosen, value)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average += loss.item() / sync
        if (step + 1) % sync == 0:
            target.load_state_dict(online.state_dict())  # bug: TA429 (runtime)
            print(f"step {step + 1}: loss {average:.4f}")
            average = 0.0


main()
