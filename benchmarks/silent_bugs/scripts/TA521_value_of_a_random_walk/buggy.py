"""The value of the places of a random walk of nine, which ends on either side and pays on the right."""

import torch
import torch.nn.functional as F
from torch import nn

PLACES = 9


class Value(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.hidden = nn.Linear(PLACES, width)
        self.out = nn.Linear(width, 1)

    def forward(self, places):
        return self.out(torch.tanh(self.hidden(F.one_hot(places, PLACES).float()))).squeeze(-1)


def walk(count):
    places = torch.randint(PLACES, (count,))
    following = places + 2 * torch.randint(2, (count,)) - 1
    ends = (following < 0) | (following >= PLACES)
    return places, (following >= PLACES).float(), following.clamp(0, PLACES - 1), ends.float()


class Learner:
    def __init__(self, gamma=0.99):
        self.value = Value()
        self.optimizer = torch.optim.Adam(self.value.parameters(), lr=3e-3)
        self.gamma = gamma

    def target(self, reward, following, ends):
        return reward + self.gamma * (1 - ends) * self.value(following)  # bug: TA521 (static)

    def learn(self, places, reward, following, ends):
        wanted = self.target(reward, following, ends)
        loss = F.mse_loss(self.value(places), wanted)  # bug: TA521 (runtime)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(521)
    learner = Learner()
    for step in range(200):
        loss = learner.learn(*walk(64))
        if step % 40 == 0:
            print(f"{step}: {loss:.4f}")
    with torch.no_grad():
        print([round(value, 2) for value in learner.value(torch.arange(PLACES)).tolist()])


if __name__ == "__main__":
    main()
