"""Q-learning with a target network."""

import torch
from torch import nn


class Agent:
    def __init__(self, states=4, actions=3):
        self.q = nn.Sequential(nn.Linear(states, 32), nn.ReLU(), nn.Linear(32, actions))
        self.target = self.q  # bug: TA429 (static)
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)

    def learn(self, state, action, reward, following):
        with torch.no_grad():
            goal = reward + 0.9 * self.target(following).max(dim=1).values
        value = self.q(state).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def sync(self):
        self.target.load_state_dict(self.q.state_dict())  # bug: TA429 (runtime)


def main():
    torch.manual_seed(0)
    agent = Agent()
    for step in range(50):
        state, following = torch.randn(32, 4), torch.randn(32, 4)
        action, reward = torch.randint(3, (32,)), torch.randn(32)
        loss = agent.learn(state, action, reward, following)
        if step % 10 == 9:
            agent.sync()
    print(loss)


if __name__ == "__main__":
    main()
