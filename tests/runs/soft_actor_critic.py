"""Soft actor critic: twin critics, targets by Polyak average, learned temperature, replay buffer."""

import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, o))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 4)

    def forward(self, s):
        mu, log_std = self.net(s).chunk(2, -1)
        std = log_std.clamp(-5, 2).exp()
        d = torch.distributions.Normal(mu, std)
        u = d.rsample()
        a = torch.tanh(u)
        logp = (d.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1, keepdim=True)
        return a, logp


actor, q1, q2 = Actor(), mlp(6, 1), mlp(6, 1)
q1t, q2t = copy.deepcopy(q1), copy.deepcopy(q2)
for p in list(q1t.parameters()) + list(q2t.parameters()):
    p.requires_grad_(False)
aopt = torch.optim.Adam(actor.parameters(), 3e-4)
qopt = torch.optim.Adam(list(q1.parameters()) + list(q2.parameters()), 1e-3)
log_alpha = torch.zeros(1, requires_grad=True)
alopt = torch.optim.Adam([log_alpha], 1e-3)
buf = []
s = torch.randn(4)
for t in range(130):
    with torch.no_grad():
        a, _ = actor(s.unsqueeze(0))
        a = a.squeeze(0)
    s2 = 0.9 * s + 0.1 * torch.cat([a, a]) + 0.05 * torch.randn(4)
    r = -(s2**2).sum()
    done = float(t % 50 == 49)
    buf.append((s, a, r, s2, done))
    s = torch.randn(4) if done else s2
    if len(buf) < 64:
        continue
    S, A, R, S2, D = zip(*random.sample(buf, 32), strict=False)
    S, A, S2 = torch.stack(S), torch.stack(A), torch.stack(S2)
    R = torch.stack(R).unsqueeze(1)
    D = torch.tensor(D).unsqueeze(1)
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        a2, lp2 = actor(S2)
        tgt = torch.min(q1t(torch.cat([S2, a2], 1)), q2t(torch.cat([S2, a2], 1))) - alpha * lp2
        y = R + 0.99 * (1 - D) * tgt
    qa = torch.cat([S, A], 1)
    qloss = F.mse_loss(q1(qa), y) + F.mse_loss(q2(qa), y)
    qopt.zero_grad()
    qloss.backward()
    qopt.step()
    if t % 2 == 0:
        pi, lp = actor(S)
        qpi = torch.min(q1(torch.cat([S, pi], 1)), q2(torch.cat([S, pi], 1)))
        aloss = (alpha * lp - qpi).mean()
        aopt.zero_grad()
        aloss.backward()
        aopt.step()
        alloss = -(log_alpha * (lp + -2.0).detach()).mean()
        alopt.zero_grad()
        alloss.backward()
        alopt.step()
    with torch.no_grad():
        for q, qt in ((q1, q1t), (q2, q2t)):
            for p, pt in zip(q.parameters(), qt.parameters(), strict=False):
                pt.lerp_(p, 0.005)
