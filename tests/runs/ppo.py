# as in CleanRL, with an environment of a few lines
import torch
from torch import nn
from torch.distributions.categorical import Categorical


def layer_init(layer, std=2**0.5, bias_const=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(4, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 1), std=1.0),
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(4, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 2), std=0.01),
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


torch.manual_seed(0)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
steps, envs = 16, 8
state = torch.zeros(envs, 4)
for update in range(1, 7):
    optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / 6) * 2.5e-4
    obs, actions = torch.zeros(steps, envs, 4), torch.zeros(steps, envs)
    logprobs, rewards, values = (torch.zeros(steps, envs) for _ in range(3))
    for step in range(steps):
        obs[step] = state
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(state)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        state = 0.9 * state + 0.2 * torch.randn(envs, 4) + 0.1 * (2 * action.view(-1, 1) - 1)
        rewards[step] = 1 - state[:, 0].abs()
    with torch.no_grad():
        next_value = agent.get_value(state).reshape(1, -1)
        advantages, lastgaelam = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            nextvalues = next_value if t == steps - 1 else values[t + 1]
            delta = rewards[t] + 0.99 * nextvalues - values[t]
            advantages[t] = lastgaelam = delta + 0.99 * 0.95 * lastgaelam
        returns = advantages + values
    b_obs, b_actions, b_logprobs = obs.reshape(-1, 4), actions.reshape(-1), logprobs.reshape(-1)
    b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
    for _epoch in range(4):
        for mb in torch.randperm(steps * envs).split(32):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions.long()[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            adv = (b_advantages[mb] - b_advantages[mb].mean()) / (b_advantages[mb].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
