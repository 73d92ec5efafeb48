"""What a policy gives out: the log-probabilities of the actions that it chose."""

import libcst as cst
import pytest
from modules import module_of

CHOSEN = {
    "of a distribution": "x = dist.log_prob(action)",
    "summed, negated and cast": "x = -dist.log_prob(action).sum(-1).float()",
    "an entry of a log-softmax": "x = torch.log_softmax(scores, 1).gather(1, action)",
    "by an index": "logs = scores.log_softmax(-1)\nx = logs[range(8), action]",
    "the log of an entry": "p = policy(state).gather(1, action)\nx = torch.log(p)",
    "the ratio of two": "x = torch.exp(dist.log_prob(action) - old)",
    "the clamped ratio of two": "x = (dist.log_prob(action) - old).exp().clamp(0.8, 1.2)",
    "of a list that a loop fills": "logs = []\nfor s in states:\n    logs.append(dist.log_prob(s))\nx = torch.stack(logs)",
    "by its name alone": "x = saved_log_probs",
}

OTHER = {
    "of all actions": "x = torch.log_softmax(scores, 1)",
    "a probability": "x = dist.log_prob(action).exp()",
    "of an action that a gradient goes through": "action = dist.rsample()\nx = dist.log_prob(action)",
    "of the policy before": "x = old_log_probs",
    "a logarithm": "x = torch.log(scores)",
    "a name of nothing known": "x = scores",
    "one way of two": "x = dist.log_prob(action) if c else scores",
}


def is_log_probability(code: str) -> bool:
    names = "dist, action, old, scores, policy, state, states, c, saved_log_probs, old_log_probs"
    module = module_of(f"import torch\ndef f({names}):\n    " + f"{code}\nuse(x)".replace("\n", "\n    "))
    uses = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "use"]
    return module.policies.is_log_probability(uses[-1].args[0].value)


@pytest.mark.parametrize("code", CHOSEN.values(), ids=CHOSEN)
def test_the_log_probability_of_a_chosen_action_is_known(code: str) -> None:
    assert is_log_probability(code)


@pytest.mark.parametrize("code", OTHER.values(), ids=OTHER)
def test_other_values_are_no_log_probabilities_of_actions(code: str) -> None:
    assert not is_log_probability(code)


@pytest.mark.parametrize(
    ("value", "into"),
    [
        ("critic(s)", ["critic(s)"]),
        ("r - critic(s).squeeze(-1)", ["critic(s)"]),
        ("(r - critic(s)).detach()", []),
        ("actor(s) + critic(s)", ["actor(s)", "critic(s)"]),
        ("r", []),
    ],
)
def test_the_networks_that_a_gradient_flows_into(value: str, into: list[str]) -> None:
    made = "actor, critic = torch.nn.Linear(4, 2), torch.nn.Linear(4, 1)"
    module = module_of(f"import torch\n{made}\ns, r = torch.zeros(2, 4), torch.zeros(2)\nuse({value})")
    uses = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "use"]
    assert [module.code(call) for call in module.gradients.of(uses[-1].args[0].value).into] == into
