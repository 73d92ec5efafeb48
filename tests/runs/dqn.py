# as in the PyTorch tutorial, with an environment of a few lines
import random
from collections import deque, namedtuple

import torch
from torch import nn
from torch.nn import functional as F

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 64)
        self.layer2 = nn.Linear(64, 64)
        self.layer3 = nn.Linear(64, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


torch.manual_seed(0)
random.seed(0)
policy_net, target_net = DQN(4, 2), DQN(4, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=3e-4, amsgrad=True)
memory = deque(maxlen=1000)


def select_action(state, epsilon):
    if random.random() > epsilon:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model(batch_size=32, gamma=0.99):
    if len(memory) < batch_size:
        return
    batch = Transition(*zip(*random.sample(memory, batch_size), strict=False))
    non_final_mask = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_values = torch.zeros(batch_size)
    with torch.no_grad():
        next_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_values * gamma) + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


for _episode in range(12):
    state = 0.05 * torch.randn(1, 4)
    for t in range(15):
        action = select_action(state, epsilon=0.5)
        push = 0.1 * (2 * action.item() - 1)
        next_state = state + torch.tensor([[0.02, push, 0.02, -push]]) + 0.02 * torch.randn(1, 4)
        done = next_state.abs().max() > 1 or t == 14
        reward = torch.tensor([1.0 - next_state.abs().max().item()])
        memory.append(Transition(state, action, None if done else next_state, reward))
        optimize_model()
        target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * 0.005 + target_state[key] * 0.995
        target_net.load_state_dict(target_state)
        if done:
            break
        state = next_state
