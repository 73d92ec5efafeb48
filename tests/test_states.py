"""Which values of a function are computed from the current state, and which from the next."""

import libcst as cst
import pytest
from modules import module_of

STATES = {
    "the current one": ("x = policy(states)", {"current"}),
    "the next one": ("x = policy(next_states).argmax(1)", {"next"}),
    "through names": ("q = net(obs)\nx = q.max(1)[1]", {"current"}),
    "unpacked": ("x, log_prob = actor.sample(batch.next_obs)", {"next"}),
    "of a dictionary": ("x = actor(batch['obs2'])", {"next"}),
    "of both": ("x = model(torch.cat([state, s_prime]))", {"current", "next"}),
    "on two ways": ("x = net(state)\nif double:\n    x = net(new_state)", {"current", "next"}),
    "of a state that was next": ("state = next_state\nx = policy(state)", {"current"}),
    "of a hidden state": ("x = policy(hidden_state)", set()),
    "by a keyword": ("x = policy(state=y)", set()),
    "of none": ("x = policy(y)", set()),
}


@pytest.mark.parametrize(("code", "states"), STATES.values(), ids=STATES)
def test_the_states_that_a_value_is_computed_from(code: str, states: set[str]) -> None:
    names = "policy, net, actor, model, states, next_states, obs, batch, state, s_prime, new_state, y, double"
    body = f"{code}\nuse(x)".replace("\n", "\n    ")
    module = module_of(f"import torch\ndef f({names}, next_state, hidden_state):\n    {body}")
    uses = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "use"]
    assert module.states.of(uses[-1].args[0].value) == states
