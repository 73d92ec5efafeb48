"""Q-learning with a replay buffer on a small grid, where the goal is in a corner."""

import argparse
import random
from collections import deque

import torch
from torch import nn

SIZE = 4
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class Grid:
    def reset(self):
        self.row, self.column, self.steps = random.randrange(SIZE), random.randrange(SIZE - 1), 0
        return self.observe()

    def observe(self):
        state = torch.zeros(SIZE * SIZE)
        state[self.row * SIZE + self.column] = 1.0
        return state

    def step(self, action):
        down, right = MOVES[action]
        self.row = min(max(self.row + down, 0), SIZE - 1)
        self.column = min(max(self.column + right, 0), SIZE - 1)
        self.steps += 1
        at_goal = (self.row, self.column) == (SIZE - 1, SIZE - 1)
        return self.observe(), float(at_goal), at_goal


class QNetwork(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SIZE * SIZE, width), nn.ReLU(), nn.Linear(width, len(MOVES)))

    def forward(self, state):
        return self.layers(state)


class Agent:
    def __init__(self, gamma=0.95, lr=2e-3):
        self.q_network, self.target_network = QNetwork(), QNetwork()  # bug: TA541
        self.target_network.eval()
        self.optimizer = torch.optim.Adam(self.q_network.parameters(), lr=lr)
        self.memory = deque(maxlen=2000)
        self.gamma = gamma

    @torch.no_grad()
    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(len(MOVES))
        return self.q_network(state).argmax().item()

    def learn(self, batch_size=32):
        batch = random.sample(self.memory, batch_size)
        states, actions, rewards, next_states, ends = (torch.stack(column) for column in zip(*batch))
        with torch.no_grad():
            next_values = self.target_network(next_states).max(dim=1).values
            wanted = rewards + self.gamma * (1 - ends) * next_values
        values = self.q_network(states).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(values, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1300)
    args = parser.parse_args()

    torch.manual_seed(5)
    random.seed(5)
    grid, agent = Grid(), Agent()
    state, goals = grid.reset(), 0
    for step in range(args.steps):
        action = agent.act(state, epsilon=max(0.1, 1 - step / 800))
        next_state, reward, ended = grid.step(action)
        row = state, torch.tensor(action), torch.tensor(reward), next_state, torch.tensor(float(ended))
        agent.memory.append(row)
        goals += ended
        state = grid.reset() if ended or grid.steps == 40 else next_state
        if len(agent.memory) >= 64:
            loss = agent.learn()
        if step % 325 == 324:
            print(f"step {step + 1}: {goals} goals, loss {loss:.4f}")


main()
