"""Which values are entropies of a policy, and with which sign."""

import libcst as cst
import pytest
from modules import module_of

SIGNS = {
    "of a distribution": ("x = dist.entropy().mean()", 1),
    "with its minus": ("x = -(probs * log_probs).sum(-1)", 1),
    "with the minus inside": ("x = torch.sum(-probs * log_probs, 1)", 1),
    "without it": ("x = (probs * log_probs).sum(-1)", -1),
    "by the logarithm of the same": ("x = (p * torch.log(p + 1e-8)).sum()", -1),
    "by softmax and log-softmax": (
        "a, b = torch.softmax(z, 1), torch.log_softmax(z, 1)\nx = (a * b).sum()",
        -1,
    ),
    "times a coefficient": ("x = ent_coef * dist.entropy()", 1),
    "times a negative number": ("x = -0.1 * dist.entropy()", -1),
    "of a list": ("xs = []\nfor s in z:\n    xs.append(dist.entropy())\nx = torch.stack(xs).mean()", 1),
    "of two functions of scores": (
        "a, b = torch.softmax(z, 1), torch.log_softmax(y, 1)\nx = (a * b).sum()",
        None,
    ),
    "of two policies": ("x = (teacher_probs * log_probs).sum()", None),
    "detached": ("x = dist.entropy().detach()", None),
    "times what nobody knows": ("x = z * dist.entropy()", None),
    "of two signs": ("x = dist.entropy() if c else -dist.entropy()", None),
    "by its name alone": ("x = entropy", None),
}


@pytest.mark.parametrize(("code", "sign"), SIGNS.values(), ids=SIGNS)
def test_the_sign_of_an_entropy(code: str, sign: int | None) -> None:
    names = "dist, probs, log_probs, teacher_probs, p, y, z, c, ent_coef, entropy"
    module = module_of(f"import torch\ndef f({names}):\n    " + f"{code}\nuse(x)".replace("\n", "\n    "))
    uses = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "use"]
    found = module.entropies.of(uses[-1].args[0].value)
    assert (found.sign if found is not None else None) == sign
