"""A suspicion of the source ends as confirmed, refuted or unobserved by a run, for each rule that both observers see.

The blocks with the word `verdict` in `tests/cases/` are linted and run; the marks are what each suspicion comes to.
Those of two ranks are run by `test_distributed_rules`.
"""

import ast
from pathlib import Path

import pytest
import torch
from marked import Block, blocks
from observed import judged

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Verdict

ROOT = Path(__file__).parents[1]
BLOCKS = [
    block
    for page in sorted((ROOT / "tests" / "cases").glob("TA*.md"))
    for block in blocks(page)
    if "verdict" in block.words
]
CHECKS_OF_A_RUN = sorted(
    (*(ROOT / "ta_runtime" / "checks").glob("ta*.py"), *(ROOT / "ta_lint" / "checks" / "runs").glob("ta*.py"))
)
BOTH = sorted(rule.id for rule in catalogue().values() if {"static", "runtime"} <= set(rule.observers))

NO_LOOK_ALIKE = {
    "TA158": "packing that cuts texts passes no positions that restart: a row with two texts leaks",
    "TA306": "the linter knows the samples of the last batch, so only the batch norm may not run",
    "TA323": "a cycle repeats the first epoch as soon as that is over",
    "TA325": "a loader that restarts for each batch loses the others, if it has others",
    "TA413": "on the CPU nothing is moved; on another device the tensor is left behind",
    "TA424": "it is seen by the exception that it raises; a line that does not raise leaves no trace",
    "TA622": "what clips after each backward pass clips several sums of a step, if it has several",
    "TA650": "where Accelerate has something to do, going past it leaves that out",
    "TA811": "the norm that the linter suspects is in parts wherever there are several ranks",
}
"""Rules whose suspicion a run cannot refute, and why."""


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.alone], ids=str)
def test_each_suspicion_of_a_case_has_the_verdict_it_is_marked_with(block: Block, tmp_path: Path) -> None:
    if "cuda" in block.words and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    torch.seed() if "unseeded" in block.words else torch.manual_seed(0)
    every = int(block.settings.get("every", 1))
    found = judged(block.code, tmp_path, [block.page[:5]], every_n_steps=every)
    for verdict in Verdict:
        of_rule = {
            (finding.site.line, finding.rule)
            for finding in found
            if finding.verdict is verdict and finding.observer != "runtime"
        }
        assert of_rule == block.expected(verdict), verdict


@pytest.mark.parametrize("rule", [rule for rule in BOTH if rule != "TA000"])
def test_a_rule_of_both_observers_shows_every_verdict_that_is_possible(rule: str) -> None:
    shown = {
        verdict
        for verdict in Verdict
        for block in BLOCKS
        if block.page[:5] == rule and block.expected(verdict)
    }
    possible = set(Verdict) - ({Verdict.REFUTED} if rule in NO_LOOK_ALIKE else set())
    assert shown == possible


HIDDEN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 8)
        blocks = [nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)) for _ in range(2)]
        self.blocks = blocks
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held_out = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)
for epoch in range(4):
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        print(sum(nn.functional.mse_loss(model(x), y).item() for x, y in held_out))
"""


def test_what_a_confirmed_finding_hides_is_unobserved_and_says_so(tmp_path: Path) -> None:
    """D17: layers in a plain list have a mode that the model does not know."""
    found = {one.rule: one for one in judged(HIDDEN, tmp_path, ["TA410", "TA612"])}
    assert {rule: one.verdict for rule, one in found.items()} == {
        "TA410": Verdict.CONFIRMED,
        "TA612": Verdict.UNOBSERVED,
    }
    assert found["TA612"].counts
    assert "says TA410 at example.py:" in found["TA612"].because


def _of_looks() -> list[tuple[str, ast.Call]]:
    """Every `Refutation` and `Unobserved` that a check makes, with the name of its module."""
    return [
        (path.stem, call)
        for path in CHECKS_OF_A_RUN
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Refutation", "Unobserved")
    ]


def test_each_look_says_in_a_few_plain_words_what_it_rests_on() -> None:
    """D17."""
    said = [
        (module, part.value)
        for module, call in _of_looks()
        for part in ast.walk(call.args[1])
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    assert len(said) > 50
    for module, text in said:
        assert len(text) <= 90, module
        assert not text.rstrip().endswith("."), module
        assert text == "" or not text[0].isupper(), (module, text)


def _refutes(check: Path) -> bool:
    """Whether a check makes a refutation, itself or by a function of a module beside it."""
    text = check.read_text()
    calls = (call.func for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call))
    beside = [
        (check.with_name(f"{called.value.id}.py"), called.attr)
        for called in calls
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
    ]
    shared = [
        ast.unparse(function)
        for path, name in beside
        if path.exists()
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef) and function.name == name
    ]
    return any("Refutation(" in code for code in (text, *shared))


def test_each_rule_that_a_run_can_refute_has_a_page_that_says_when() -> None:
    refuting = {path.stem[:5].upper() for path in CHECKS_OF_A_RUN if _refutes(path)}
    for rule in sorted(set(BOTH) - {"TA000"}):
        [page] = (ROOT / "rules").glob(f"{rule}-*.md")
        section = (
            page.read_text(encoding="utf-8").partition("## What each observer sees")[2].partition("\n## ")[0]
        )
        assert "\n**Unobserved** if" in section, rule
        assert ("\n**Refuted** if" in section) is (rule in refuting), rule
