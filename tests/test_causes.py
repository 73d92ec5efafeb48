"""D18: what a run measures elsewhere than where it is caused is one finding with what the linter suspects of it.

Each program has its cause in another function than where the run sees it; the mark is the line that is suspected.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from observed import judged

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Finding, Severity, Site, Verdict
from ta_lint.core.logs import read_log
from ta_lint.core.sarif import sarif_log
from ta_lint.core.verdict import joined

HEAD = """\
import copy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset
import torch.utils.data as data

make = getattr(data, "DataLoader")
loader = make(TensorDataset(torch.randn(96, 8), torch.randint(0, 3, (96,))), batch_size=8)


"""
PROGRAMS = {
    "TA523": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return F.log_softmax(self.fc(x), dim=0)  # here


def objective(out, y):
    return F.nll_loss(out, y)


def score(model):
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def fit(model, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        objective(model(x), y).backward()
        optimizer.step()


net = Net()
fit(net, torch.optim.SGD(net.parameters(), lr=0.1))
score(net)
""",
    "TA852": """
def learn(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    net = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(20):  # here
        for x, y in loader:
            learn(F.cross_entropy(net(x), y), optimizer)


main()
""",
    "TA429": """
class Agent:
    def __init__(self):
        self.policy = nn.Linear(8, 3)
        self.target = self.policy  # here
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.1)

    def synchronise(self):
        self.target.load_state_dict(self.policy.state_dict())

    def fit(self):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.policy(x), y).backward()
            self.optimizer.step()
            self.synchronise()


Agent().fit()
""",
    "TA508": """
class Average:
    def __init__(self, model):
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] = 0.99 * self.shadow[name] + 0.01 * p  # here


def fit(model, optimizer, average):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        average.update(model)


net = nn.Linear(8, 3)
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), Average(net))
""",
    "TA521": """
def objective(critic, x, following, reward):
    target = reward + 0.99 * critic(following)  # here
    return compare(critic(x), target)


def compare(value, target):
    return F.mse_loss(value, target)


def fit(critic, optimizer):
    for x, y in loader:
        loss = objective(critic, x, x.roll(1, 0), y[:, None].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


net = nn.Linear(8, 1)
fit(net, torch.optim.SGD(net.parameters(), lr=0.01))
""",
}


@pytest.mark.parametrize("rule", PROGRAMS)
def test_a_cause_and_where_it_shows_are_one_finding(rule: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    code = HEAD + PROGRAMS[rule].removeprefix("\n")
    [line] = [number for number, text in enumerate(code.splitlines(), 1) if text.endswith("# here")]
    found = judged(code, tmp_path, [rule])
    assert [(each.site.line, each.observer, each.verdict) for each in found] == [
        (line, "both", Verdict.CONFIRMED)
    ]


# -- by the code that took part in a step ----------------------------------------------------------------------


def suspicion(path: str, name: str, rule: str = "TA523") -> Finding:
    return Finding(
        rule,
        "softmax mixes the batch",
        Severity.ERROR,
        Site(path, 9, 1, 9, 9, name),
        fingerprint=f"{path}{name}:1",
    )


def measured(*scopes: tuple[str, str], rule: str = "TA523", line: int = 20) -> Finding:
    seen = suspicion("train.py", "fit", rule)
    site = replace(seen.site, line=line)
    return replace(seen, site=site, observer="runtime", fingerprint=f"loss{line}:1", scopes=scopes)


NET = suspicion("model.py", "Net.forward")
OTHER = suspicion("other.py", "Other.forward")
TOOK_PART = (("train.py", ""), ("train.py", "fit"), ("model.py", "Net"))


def verdicts(suspicions: list[Finding], found: list[Finding]) -> list[tuple[str, str, str | None]]:
    return [(one.site.path, one.observer, one.verdict) for one in joined(suspicions, found, [])]


def test_the_only_suspicion_in_the_classes_that_took_part_is_the_cause_whatever_its_file() -> None:
    assert verdicts([NET, OTHER], [measured(*TOOK_PART)]) == [
        ("model.py", "both", "confirmed"),
        ("other.py", "static", "unobserved"),
    ]


@pytest.mark.parametrize(
    ("suspicions", "found"),
    [
        ([NET, suspicion("model.py", "Net.head")], [measured(*TOOK_PART)]),
        ([NET], [measured(*TOOK_PART), measured(*TOOK_PART, line=30)]),
        ([OTHER], [measured(*TOOK_PART)]),
        ([suspicion("model.py", "Network.forward")], [measured(*TOOK_PART)]),
        ([suspicion("train.py", "other")], [measured(*TOOK_PART)]),
        ([suspicion("model.py", "Net.forward", "TA406")], [measured(*TOOK_PART)]),
        ([NET], [measured()]),
    ],
    ids=[
        "two causes",
        "two findings",
        "elsewhere",
        "a longer name",
        "a function",
        "another rule",
        "at its place",
    ],
)
def test_where_nothing_says_which_belong_together_they_stay_apart(
    suspicions: list[Finding], found: list[Finding]
) -> None:
    assert "both" not in {observer for _, observer, _ in verdicts(suspicions, found)}


def test_logs_keep_the_code_that_took_part(tmp_path: Path) -> None:
    log = tmp_path / "run.sarif"
    log.write_text(sarif_log([measured(*TOOK_PART)], catalogue(), version="0.1.0"))
    assert [one.scopes for one in read_log(log).findings] == [TOOK_PART]
