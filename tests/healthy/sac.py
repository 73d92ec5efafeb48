"""Tempting: a learned temperature that is a leaf tensor, three optimizers, targets by polyak, a squashed log-probability."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

q1, q2 = nn.Linear(6, 1), nn.Linear(6, 1)
q1_target, q2_target = copy.deepcopy(q1), copy.deepcopy(q2)
actor = nn.Linear(4, 4)
q_optimizer = torch.optim.Adam(list(q1.parameters()) + list(q2.parameters()), lr=1e-3)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
log_alpha = torch.zeros(1, requires_grad=True)
alpha = log_alpha.exp().item()
a_optimizer = torch.optim.Adam([log_alpha], lr=1e-3)
target_entropy = -2.0


def sample(x):
    mean, log_std = actor(x).chunk(2, dim=-1)
    normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
    x_t = normal.rsample()
    y_t = torch.tanh(x_t)
    log_prob = normal.log_prob(x_t) - torch.log(1 - y_t.pow(2) + 1e-6)
    return y_t, log_prob.sum(1, keepdim=True)


def replay(size):
    return tuple(torch.randn(size, n) for n in (4, 2, 1, 4, 1))


for step in range(1000):
    obs, actions, rewards, following, dones = replay(256)
    with torch.no_grad():
        next_actions, next_log_pi = sample(following)
        joined = torch.cat([following, next_actions], 1)
        least = torch.min(q1_target(joined), q2_target(joined)) - alpha * next_log_pi
        next_q = rewards.flatten() + (1 - dones.flatten()) * 0.99 * least.view(-1)
    joined = torch.cat([obs, actions], 1)
    q_loss = F.mse_loss(q1(joined).view(-1), next_q) + F.mse_loss(q2(joined).view(-1), next_q)
    q_optimizer.zero_grad()
    q_loss.backward()
    q_optimizer.step()
    if step % 2 == 0:
        for _ in range(2):
            pi, log_pi = sample(obs)
            joined = torch.cat([obs, pi], 1)
            actor_loss = ((alpha * log_pi) - torch.min(q1(joined), q2(joined))).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            with torch.no_grad():
                _, log_pi = sample(obs)
            alpha_loss = (-log_alpha.exp() * (log_pi + target_entropy)).mean()
            a_optimizer.zero_grad()
            alpha_loss.backward()
            a_optimizer.step()
            alpha = log_alpha.exp().item()
    for network, target in ((q1, q1_target), (q2, q2_target)):
        for param, target_param in zip(network.parameters(), target.parameters()):
            target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)
