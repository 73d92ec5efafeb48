"""Tempting: a loss summed over a rollout, detached values, entropy from probabilities, two heads of one body."""

import torch
from torch import nn
from torch.nn import functional as F


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(32, 64)
        self.critic = nn.Linear(64, 1)
        self.actor = nn.Linear(64, 4)

    def forward(self, x, hidden):
        hx, cx = self.lstm(x, hidden)
        return self.critic(hx), self.actor(hx), (hx, cx)


def train(env, model, optimizer, steps=20, gamma=0.99):
    model.train()
    state, done = env.reset(), True
    while True:
        if done:
            cx, hx = torch.zeros(1, 64), torch.zeros(1, 64)
        else:
            cx, hx = cx.detach(), hx.detach()
        values, log_probs, rewards, entropies = [], [], [], []
        for step in range(steps):
            value, logit, (hx, cx) = model(state.unsqueeze(0), (hx, cx))
            prob, log_prob = F.softmax(logit, dim=-1), F.log_softmax(logit, dim=-1)
            entropies.append(-(log_prob * prob).sum(1, keepdim=True))
            action = prob.multinomial(num_samples=1).detach()
            state, reward, done, _ = env.step(action.item())
            values.append(value)
            log_probs.append(log_prob.gather(1, action))
            rewards.append(reward)
            if done:
                state = env.reset()
                break
        R = torch.zeros(1, 1)
        if not done:
            value, _, _ = model(state.unsqueeze(0), (hx, cx))
            R = value.detach()
        policy_loss = value_loss = 0
        for i in reversed(range(len(rewards))):
            R = gamma * R + rewards[i]
            advantage = R - values[i]
            value_loss = value_loss + 0.5 * advantage.pow(2)
            policy_loss = policy_loss - log_probs[i] * advantage.detach() - 0.01 * entropies[i]
        optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 40)
        optimizer.step()
