"""D38: what each id of torch-audit means here, as the table of `docs/from-torch-audit.md` says it, in one scenario for each rule.

A scenario is the smallest program for which torch-audit 0.3.0 reports its rule, and truly. If ours means less, it is a note,
or silent, as the table says, and a second scenario shows the harm that it does report.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ta_lint.core.catalogue import catalogue
from ta_runtime import Auditor

PAGE = (Path(__file__).parents[1] / "docs" / "from-torch-audit.md").read_text(encoding="utf-8")
TABLE = {
    cells[0]: (cells[2].split()[0].rstrip(":,"), cells[3])
    for cells in (row.strip("| ").split(" | ") for row in PAGE.splitlines())
    if re.fullmatch(r"TA\d{3}", cells[0])
}
"""Of each id whether ours means the same, more or less, and what is said of its scenario."""

BESIDE = {
    cells[0].removeprefix("of "): cells[2]
    for cells in (row.strip("| ").split(" | ") for row in PAGE.splitlines())
    if re.fullmatch(r"of TA\d{3}", cells[0])
}
"""Of each scenario all that ours says, beside what torch-audit does."""

Scenario = Callable[[], Auditor]
HERE: dict[str, Scenario] = {}
"""By id, the scenarios in which torch-audit reports its rule."""
HARM: dict[str, Scenario] = {}
"""By id, those that ours reports where it means less."""


def in_torch_audit(scenario: Scenario) -> Scenario:
    HERE[scenario.__name__.upper()] = scenario
    return scenario


def harm(scenario: Scenario) -> Scenario:
    HARM[scenario.__name__[:5].upper()] = scenario
    return scenario


def static(model: nn.Module) -> Auditor:
    with Auditor(model, auto_finish=False) as auditor:
        auditor.audit_static()
    return auditor


def init(model: nn.Module, optimizer: torch.optim.Optimizer) -> Auditor:
    with Auditor(model, optimizer, auto_finish=False) as auditor:
        auditor.audit_init()
    return auditor


def data(model: nn.Module, batch: object) -> Auditor:
    with Auditor(model, auto_finish=False) as auditor:
        auditor.audit_data(batch)
    return auditor


def trained(
    model: nn.Module,
    batches: Iterable[Tensor],
    optimizer: torch.optim.Optimizer | None = None,
    loss: Callable[[Tensor], Tensor] = lambda out: out.square().mean(),
) -> Auditor:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    with Auditor(model, optimizer, every_n_steps=1, auto_finish=False) as auditor:
        for batch in batches:
            optimizer.zero_grad()
            auditor.backward(loss(auditor.forward(batch)))
            auditor.optimizer_step()
    return auditor


def rows(count: int, size: int = 8, steps: int = 1) -> list[Tensor]:
    return [torch.randn(count, size) for _ in range(steps)]


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


def layer(model: nn.Sequential, index: int) -> nn.Linear:
    found = model[index]
    assert isinstance(found, nn.Linear)
    return found


# -- stability ------------------------------------------------------------------------------------------------


@in_torch_audit
def ta100() -> Auditor:
    model = mlp()
    layer(model, 0).weight.data[0, 0] = float("nan")
    return static(model)


@in_torch_audit
def ta102() -> Auditor:
    return trained(mlp(), rows(16), loss=lambda out: 1e4 * out.square().sum())


@harm
def ta102_after_a_usual_start() -> Auditor:
    batches = [*rows(16, steps=80), 1e3 * torch.randn(16, 8)]
    return trained(mlp(), batches, loss=lambda out: F.mse_loss(out, torch.ones_like(out)))


@in_torch_audit
def ta103() -> Auditor:
    model = mlp()
    return trained(model, rows(16), loss=lambda out: (out * 0 + layer(model, 2).bias).square().mean() + 1)


@harm
def ta103_at_every_step() -> Auditor:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.cut = nn.Linear(8, 2), nn.Linear(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x) + 0 * self.cut(x)  # type: ignore[no-any-return]

    return trained(Scaled(), rows(16, steps=60), loss=lambda out: F.mse_loss(out, torch.ones_like(out)))


@in_torch_audit
def ta104() -> Auditor:
    return without_gradient(1)


@harm
def ta104_three_times() -> Auditor:
    return without_gradient(4)


def without_gradient(steps: int) -> Auditor:
    model, other = mlp(), mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return trained(
        model, rows(16, steps=steps), optimizer, lambda out: other(torch.randn(4, 8)).square().mean()
    )


@in_torch_audit
def ta105() -> Auditor:
    return collapsed(16)


@harm
def ta105_of_many_rows() -> Auditor:
    return collapsed(64)


def collapsed(count: int) -> Auditor:
    model = mlp()
    layer(model, 0).bias.data.fill_(-100.0)
    return trained(model, rows(count, steps=2))


# -- hardware -------------------------------------------------------------------------------------------------


@in_torch_audit
def ta200() -> Auditor:
    return static(nn.Linear(1023, 1023))


@in_torch_audit
def ta201() -> Auditor:
    return static(nn.Conv2d(3, 16, 3))


@in_torch_audit
def ta203() -> Auditor:
    return static(nn.Linear(64, 64))


# -- data -----------------------------------------------------------------------------------------------------


@in_torch_audit
def ta300() -> Auditor:
    return data(nn.Linear(4, 2, device="meta"), torch.randn(8, 4))


@in_torch_audit
def ta301() -> Auditor:
    return data(nn.Conv2d(3, 8, 3), torch.randint(256, (8, 3, 16, 16)).float())


@in_torch_audit
def ta302() -> Auditor:
    return data(nn.Linear(4, 2), torch.zeros(8, 4))


@in_torch_audit
def ta303() -> Auditor:
    return data(nn.Conv2d(3, 8, 3), torch.randn(8, 32, 32, 3))


@in_torch_audit
def ta304() -> Auditor:
    return data(nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8)), torch.randn(3, 4))


@in_torch_audit
def ta305() -> Auditor:
    return data(nn.Embedding(10, 4), torch.tensor([[1, 2, -1]]))


# -- optimizer and architecture -------------------------------------------------------------------------------


@in_torch_audit
def ta400() -> Auditor:
    return static(nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)))


@in_torch_audit
def ta401() -> Auditor:
    model = nn.Linear(4, 2, bias=False)
    return init(model, torch.optim.Adam(model.parameters(), weight_decay=0.1))


@in_torch_audit
def ta402() -> Auditor:
    return decayed(0.01)


@harm
def ta402_strongly() -> Auditor:
    return decayed(0.1)


def decayed(decay: float) -> Auditor:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    return init(model, torch.optim.AdamW(model.parameters(), weight_decay=decay))


@in_torch_audit
def ta403() -> Auditor:
    model = nn.Embedding(10, 4)
    return init(model, torch.optim.AdamW(model.parameters(), weight_decay=0.01))


@in_torch_audit
def ta404() -> Auditor:
    return static(nn.Sequential(nn.Conv2d(3, 16, kernel_size=2), nn.ReLU()))


@harm
def ta404_that_is_padded() -> Auditor:
    return static(nn.Sequential(nn.Conv2d(3, 16, kernel_size=4, padding=2), nn.ReLU()))


@in_torch_audit
def ta405() -> Auditor:
    convolution = nn.Conv2d(3, 16, 3)
    convolution.weight.data[3:] = 0.0
    return static(convolution)


@harm
def ta405_that_stay_dead() -> Auditor:
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 2))
    kill(model)
    return trained(model, [torch.randn(8, 3, 8, 8) for _ in range(4)])


def kill(model: nn.Sequential) -> None:
    """Some filters of its first layer, behind whose rectifier no gradient comes back."""
    first = model[0]
    assert isinstance(first, nn.Conv2d)
    assert first.bias is not None
    first.weight.data[3:] = 0.0
    first.bias.data[3:] = -1.0


class Partly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.ghost = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x)  # type: ignore[no-any-return]


@in_torch_audit
def ta500() -> Auditor:
    return trained(Partly(), rows(8))


@harm
def ta500_in_ten_steps() -> Auditor:
    return trained(Partly(), rows(8, steps=12))


class Reused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.BatchNorm1d(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.second(self.norm(self.first(x))))  # type: ignore[no-any-return]


@in_torch_audit
def ta501() -> Auditor:
    return trained(Reused(), rows(16))


OF_A_GPU = {"TA200", "TA201", "TA203"}
"""Without one they say nothing; the cases of their pages run with one."""


# -- the table ------------------------------------------------------------------------------------------------


def said(auditor: Auditor, rule: str) -> str:
    """How an audit reports a rule."""
    assert not [finding for finding in auditor.findings if finding.rule == "TA000"]
    found = [finding for finding in auditor.findings if finding.rule == rule]
    if not found:
        return "silent"
    [finding] = found
    return "found" if finding.severity is catalogue()[rule].severity else "a note"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)


def test_the_table_has_each_id_of_torch_audit_once() -> None:
    assert HERE.keys() | {"TA202"} == TABLE.keys()
    assert len(TABLE) == 23
    assert {meaning for meaning, _ in TABLE.values()} == {"same", "narrower", "wider"}


@pytest.mark.parametrize("rule", HERE)
def test_a_scenario_of_torch_audit_is_reported_as_the_table_says(rule: str) -> None:
    if rule in OF_A_GPU and torch.cuda.is_available():
        pytest.skip("the table is about a machine without a GPU")
    assert said(HERE[rule](), rule) == TABLE[rule][1]


@pytest.mark.parametrize("rule", HERE)
def test_nothing_else_is_said_of_a_scenario_than_the_page_has_beside_torch_audit(rule: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("the table is about a machine without a GPU")
    findings = sorted({(one.rule, one.severity.value) for one in HERE[rule]().findings})
    assert (", ".join(map(" ".join, findings)) or "nothing") == BESIDE[rule]


@pytest.mark.parametrize("rule", HARM)
def test_the_harm_is_reported_where_an_id_means_less(rule: str) -> None:
    assert TABLE[rule][0] == "narrower"
    assert said(HARM[rule](), rule) == "found"


def test_each_id_that_is_less_than_found_in_its_scenario_has_one_that_is_found() -> None:
    less = {rule for rule, (_, told) in TABLE.items() if told != "found"}
    assert less == HARM.keys() - {"TA103", "TA404"} | OF_A_GPU | {"TA202", "TA403"}
    assert {rule for rule in less if TABLE[rule][1] == "silent"} == OF_A_GPU


def test_a_rule_that_is_off_by_default_can_be_selected() -> None:
    model = nn.Embedding(10, 4)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    with Auditor(model, optimizer, select_rules="TA403", auto_finish=False) as auditor:
        auditor.audit_init()
    assert said(auditor, "TA403") == "found"


def test_a_note_becomes_what_its_page_says_when_training_shows_the_harm() -> None:
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 2))
    kill(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Auditor(model, optimizer, every_n_steps=1, auto_finish=False) as auditor:
        auditor.audit_static()
        assert said(auditor, "TA405") == "a note"
        for _ in range(4):
            optimizer.zero_grad()
            auditor.backward(auditor.forward(torch.randn(8, 3, 8, 8)).square().mean())
            auditor.optimizer_step()
    assert said(auditor, "TA405") == "found"


def test_each_value_of_a_mapping_is_a_batch_if_the_model_knows_none_of_the_names() -> None:
    """As a demo of torch-audit hands two wrong batches over."""
    turned, bytes_ = torch.randn(2, 32, 32, 3), torch.randint(256, (2, 3, 32, 32)).float()
    auditor = data(nn.Conv2d(3, 8, 3), {"nhwc": turned, "range": bytes_})
    assert (said(auditor, "TA303"), said(auditor, "TA301")) == ("found", "found")


def test_large_values_and_few_samples_are_notes_of_a_batch_that_is_asked_about() -> None:
    assert said(data(nn.Linear(64, 2), torch.rand(16, 64) * 255.0), "TA301") == "a note"
    convolution = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8))
    assert said(data(convolution, torch.randn(2, 3, 16, 16)), "TA304") == "a note"
    assert said(data(convolution, torch.randn(16, 3, 16, 16)), "TA304") == "silent"
