# A policy gradient with distributions, sampling and reparametrisation.
import torch
from told import told
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence

torch.manual_seed(0)
policy = nn.Linear(4, 3)
spread = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.Adam([*policy.parameters(), spread], lr=0.05)
for _ in range(6):
    choice = Categorical(logits=policy(torch.randn(8, 4)))
    action = choice.sample()
    noise = Normal(0.0, spread.exp())
    optimizer.zero_grad()
    (
        -(choice.log_prob(action) * (action == 1)).mean()
        - 0.01 * choice.entropy().mean()
        + noise.rsample().pow(2).mean()
        + kl_divergence(noise, Normal(0.0, 1.0)).mean()
    ).backward()
    optimizer.step()
told(policy, spread)
