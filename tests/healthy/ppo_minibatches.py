"""Tempting: many updates from one rollout, a gradient-free rollout by decorator, `std` of a parameter, early break."""

import torch
from torch import nn
from torch.distributions import Normal


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
        self.actor_mean = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 2))
        self.actor_logstd = nn.Parameter(torch.zeros(1, 2))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        std = torch.exp(self.actor_logstd.expand_as(mean))
        probs = Normal(mean, std)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


def train(envs, agent, total, steps, epochs, minibatch, target_kl=None):
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
    obs = torch.zeros((steps, 8))
    actions = torch.zeros((steps, 2))
    logprobs, rewards, values = torch.zeros(steps), torch.zeros(steps), torch.zeros(steps)
    following = torch.as_tensor(envs.reset())
    for iteration in range(1, total + 1):
        optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / total) * 3e-4
        for step in range(steps):
            obs[step] = following
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(following)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            following, reward = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).view(-1)
        with torch.no_grad():
            returns = rewards + agent.get_value(following).reshape(1, -1)[0]
            advantages = returns - values
        clipfracs = []
        for epoch in range(epochs):
            indices = torch.randperm(steps)
            for start in range(0, steps, minibatch):
                mb = indices[start : start + minibatch]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs[mb], actions[mb])
                logratio = newlogprob - logprobs[mb]
                ratio = logratio.exp()
                with torch.no_grad():
                    approx_kl = ((ratio - 1) - logratio).mean()
                    clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
                adv = (advantages[mb] - advantages[mb].mean()) / (advantages[mb].std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - returns[mb]) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
            if target_kl is not None and approx_kl > target_kl:
                break
