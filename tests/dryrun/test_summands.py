"""What a loss is the sum of: the terms with their signs and weights, what each is of a distribution, and which have lost their graph."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.run import Run
from ta_lint.events.summands import PolicyTerm

START = """\
import torch
from torch.distributions import Categorical, Normal
from torch.nn import functional as F

model, critic = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *critic.parameters()], lr=0.01)
x, y, action = torch.randn(8, 4), torch.randn(8, 4), torch.randint(4, (8,))
z = model(x)
a, b, c = z.exp().mean(), z.square().mean(), z.abs().mean()
dist = Categorical(logits=z)
"""
END = "\nloss.backward()\noptimizer.step()\n"


def dry(folder: Path, code: str) -> Run:
    """The facts of a dry run of a program."""
    script = folder / "train.py"
    script.write_text(START + code + END, encoding="utf-8")
    return run_of(dry_run(str(script)).events)


SUMS = {
    "a sum": ("loss = a + b", "+z.exp() +z.square()"),
    "a difference": ("loss = a - b", "+z.exp() -z.square()"),
    "a negative difference": ("loss = -(a - b)", "-z.exp() +z.square()"),
    "times numbers": ("loss = 2 * a - b * 0.5", "+z.exp() -z.square()"),
    "times a negative number": ("loss = a + -0.5 * b", "+z.exp() -z.square()"),
    "times what nobody knows": ("loss = a - float(input()) * b", "+z.exp() -z.square()"),
    "divided": ("loss = (a - b) / 4", "+z.exp() -z.square()"),
    "in place": ("loss = a.clone()\nloss -= b", "+z.exp() -z.square()"),
    "from zero": ("loss = 0\nfor one in (a, b):\n    loss = loss - one", "-z.exp() -z.square()"),
    "of a list": ("loss = sum([a, -b])", "+z.exp() -z.square()"),
    "stacked": ("loss = torch.stack([a, b]).mean()", "+z.exp() +z.square()"),
    "in another shape": ("loss = (a.view(1) + b.unsqueeze(0)).squeeze(0)", "+z.exp() +z.square()"),
    "one of two": (
        "loss = a + (b if input() else c)", "+z.exp() +z.square() +z.abs()",
    ),
    "weighted by a mask": ("loss = (a - b) * torch.ones(())", "+z.exp() -z.square()"),
    "a product is one term": ("loss = a + b * c", "+z.exp() +b * c"),
}  # fmt: skip


@pytest.mark.parametrize("what", SUMS)
def test_the_terms_of_a_loss_have_their_signs(what: str, tmp_path: Path) -> None:
    code, terms = SUMS[what]
    lines = (START + code).splitlines()
    [total] = dry(tmp_path, code).sums
    found = [
        f"{'+' if one.sign > 0 else '-'}{lines[one.place.line - 1][one.place.column : one.place.end_column]}"
        for one in total.summands
    ]
    assert " ".join(found) == terms


ENTROPIES = {
    "of a distribution": ("dist.entropy().mean()", 1),
    "with its minus": ("-(F.softmax(z, 1) * F.log_softmax(z, 1)).sum(-1).mean()", 1),
    "with the minus inside": ("torch.sum(-F.softmax(z, 1) * F.log_softmax(z, 1), 1).mean()", 1),
    "without it": ("(F.softmax(z, 1) * F.log_softmax(z, 1)).sum(-1).mean()", -1),
    "by the logarithm of the same": ("((p := torch.sigmoid(z)) * torch.log(p + 1e-8)).sum()", -1),
    "by exp of a log-softmax": ("((logs := F.log_softmax(z, 1)).exp() * logs).sum()", -1),
    "times a negative number": ("-0.1 * dist.entropy().mean()", -1),
    "of two functions of scores": ("(F.softmax(z, 1) * F.log_softmax(y, 1)).sum()", 0),
    "what gives it is unknown": ("zoo.policy(x).entropy().mean()", 1),
}


@pytest.mark.parametrize("what", ENTROPIES)
def test_the_sign_of_an_entropy_is_known(what: str, tmp_path: Path) -> None:
    code, sign = ENTROPIES[what]
    [total] = dry(tmp_path, f"import zoo\nloss = a + ({code})").sums
    assert total.summands[-1].raises == sign


CHOSEN = {
    "of a distribution": "dist.log_prob(action)",
    "summed, negated and cast": "-Normal(z, 1.0).log_prob(y).sum(-1).float()",
    "an entry of a log-softmax": "F.log_softmax(z, 1).gather(1, action.unsqueeze(1))",
    "by an index": "z.log_softmax(-1)[range(8), action]",
    "the log of an entry": "torch.log(F.softmax(z, 1).gather(1, action.unsqueeze(1)))",
    "the clamped ratio of two": "(dist.log_prob(action) - y.mean()).exp().clamp(0.8, 1.2)",
    "of an unknown distribution": "zoo.policy(x).log_prob(action)",
}
OTHER = {
    "of all actions": "F.log_softmax(z, 1)",
    "of an action that a gradient goes through": "Normal(z, 1.0).log_prob(Normal(z, 1.0).rsample())",
    "a logarithm": "torch.log(z)",
}


@pytest.mark.parametrize("what", [*CHOSEN, *OTHER])
def test_the_log_probability_of_what_was_chosen_is_known(what: str, tmp_path: Path) -> None:
    [total] = dry(tmp_path, f"import zoo\nloss = a + ({({**CHOSEN, **OTHER})[what]}).mean()").sums
    assert (total.summands[-1].kind is PolicyTerm.OF_POLICY) == (what in CHOSEN)


CUT = {
    "detached": ("loss = a + b.detach()", "b.detach()"),
    "a number": ("loss = a + b.item()", "b.item()"),
    "the argmax": ("loss = a + z.argmax(1).float().mean()", "z.argmax(1)"),
    "the data of weights": ("loss = a + model.weight.data.norm()", "model.weight.data"),
    "of another network": ("loss = a + critic(x).detach().mean()", None),
    "of the data": ("loss = a + x.mean().item()", None),
    "the value of one for the gradient of another": ("loss = a - a.detach() + b.detach()", None),
    "straight through": ("loss = a + (b - a).detach()", None),
    "taken off before": ("top = z.max().detach()\nloss = top + (z - top).exp().sum().log()", None),
    "on one of two ways": ("if input():\n    b = b.detach()\nloss = a + b", None),
}


@pytest.mark.parametrize("what", CUT)
def test_a_term_that_has_lost_its_graph_is_known(what: str, tmp_path: Path) -> None:
    code, cut = CUT[what]
    ends = [one.cut for total in dry(tmp_path, code).sums for one in total.summands if one.cut is not None]
    assert [end.code for end in ends] == ([] if cut is None else [cut])


TARGETS = {
    "a discounted output": ("critic(x), y + 0.9 * critic(y)", True),
    "by an unknown discount": ("critic(x), y + float(input()) * critic(y)", True),
    "detached": ("critic(x), y + 0.9 * critic(y).detach()", False),
    "of another network": ("critic(x), y + 0.9 * model(y)", False),
    "two views": ("critic(x), critic(y)", False),
    "a sum that is no target": ("critic(x), y + 2 * critic(y)", False),
    "written to a part": ("critic(x), goal", True),
}


@pytest.mark.parametrize("what", TARGETS)
def test_a_target_that_the_learning_network_computes_is_known(what: str, tmp_path: Path) -> None:
    sides, bootstrapped = TARGETS[what]
    code = (
        f"goal = torch.zeros(8, 1)\ngoal[0][0] = y.mean() + 0.9 * critic(y).max()\nloss = F.mse_loss({sides})"
    )
    assert bool(dry(tmp_path, code).residuals) == bootstrapped


WEIGHTS = {
    "a difference": ("y.mean() - critic(x)", True),
    "a normalised one": ("((d := y - critic(x)) - d.mean()) / d.std()", True),
    "detached": ("(y.mean() - critic(x)).detach()", False),
    "no difference": ("critic(x)", False),
    "from one": ("1 - critic(x)", False),
}


@pytest.mark.parametrize("what", WEIGHTS)
def test_an_advantage_with_a_gradient_is_known(what: str, tmp_path: Path) -> None:
    weight, has_gradient = WEIGHTS[what]
    found = dry(tmp_path, f"loss = -(dist.log_prob(action) * ({weight})).mean()").products
    assert bool(found) == has_gradient


CALLS = {
    "an entry": ("shadow[name] = 0.9 * shadow[name] + 0.1 * parameter", True),
    "detached": ("shadow[name] = 0.9 * shadow[name] + 0.1 * parameter.detach()", False),
    "computed anew": ("shadow[name] = 2 * parameter", False),
    "by its data": ("shadow[name].data.add_(parameter)", False),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_grows_with_each_call_of_a_function_that_nobody_calls_is_known(
    what: str, tmp_path: Path
) -> None:
    body, grows = CALLS[what]
    code = f"shadow = {{}}\ndef update():\n    for name, parameter in model.named_parameters():\n        {body}\nloss = a"
    found = [one for one in dry(tmp_path, code).growths if one.of_parameters]
    assert bool(found) == grows
