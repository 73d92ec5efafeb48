"""`ta-lint explain` tells a training in words."""

import json
import re
from pathlib import Path

import pytest

from ta_lint.cli import main
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.explain import explanation, text

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

body, head = nn.Linear(8, 8), nn.Linear(8, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), batch_size=8)
for epoch in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(body(x)), y).backward()
        optimizer.step()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            model(x)
"""


def told(path: Path, function: str | None = None) -> list[str]:
    """The explanation of a file, with single spaces."""
    return [" ".join(line.split()) for line in text(explanation(dry_run(str(path)), str(path), function))]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, "utf-8")
    return path


PHASES = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), batch_size=8)
phase = "first"
for epoch in range(9):
    for x, y in loader:
        if phase == "first":
            phase = "second"
        elif phase == "second":
            phase = "third"
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
"""


def test_a_loop_that_settles_sooner_in_a_later_epoch_is_told(tmp_path: Path) -> None:
    """The first epoch has one more pass until nothing changes, and the last epoch was told without any."""
    path = tmp_path / "train.py"
    path.write_text(PHASES, "utf-8")
    assert told(path)[1:] == [
        "9 for epoch in range(9):",
        "10 for x, y in loader:",
        "15 optimizer.zero_grad() gradients are cleared",
        (
            "16 nn.functional.cross_entropy(net(x), y).backward() "
            "Linear in training mode; loss: cross_entropy; gradients reach 2 parameters"
        ),
        "17 optimizer.step() step of SGD",
    ]


def test_the_loops_and_the_actions_in_them_are_told_with_their_lines(script: Path) -> None:
    assert told(script) == [
        "6 optimizer = torch.optim.SGD(head.parameters(), lr=0.1) SGD of 2 parameters",
        "8 for epoch in range(9):",
        "9 for x, y in loader:",
        "10 optimizer.zero_grad() gradients are cleared",
        (
            "11 nn.functional.cross_entropy(head(body(x)), y).backward() "
            "Linear in training mode; loss: cross_entropy; gradients reach 4 parameters"
        ),
        "12 optimizer.step() step of SGD",
        "",
        "evaluate, line 15: nothing here calls it, so its arguments are guessed",
        "16 model.eval() a module out of sight: evaluation mode",
        "18 for x, y in loader:",
        "19 model(x) a module out of sight in evaluation mode, not recorded",
        "",
        "a loss reaches them, and no optimizer holds them: Linear.weight, Linear.bias",
    ]


def test_a_function_is_told_alone(script: Path) -> None:
    assert told(script, "evaluate")[1:] == [
        "evaluate, line 15: nothing here calls it, so its arguments are guessed",
        "16 model.eval() a module out of sight: evaluation mode",
        "18 for x, y in loader:",
        "19 model(x) a module out of sight in evaluation mode, not recorded",
    ]


def test_what_happens_in_another_file_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "def update(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n", "utf-8"
    )
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nfrom engine import update\nmodel = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nupdate(model(torch.ones(1, 2)).sum(), optimizer)\n",
        "utf-8",
    )  # fmt: skip
    assert told(path)[-2:] == [
        "engine.py:2 loss.backward() gradients reach 2 parameters",
        "engine.py:3 optimizer.step() step of SGD",
    ]


def test_what_is_not_known_is_told_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nimport elsewhere\nmodel = torch.nn.Linear(2, 1)\n"
        "loss = model(torch.ones(1, 2)).sum() + elsewhere.penalty(model)\nloss.backward()\n",
        "utf-8",
    )  # fmt: skip
    assert told(path)[-2:] == [
        "not known, the most harmful first:",
        "5 what the loss reaches: elsewhere.penalty is out of sight",
    ]


def test_json_has_the_same_for_a_program(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(script), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [part["function"] for part in found["parts"]] == [None, "evaluate"]
    assert found["parts"][0]["told"][1] == {
        "file": str(script), "line": 8, "depth": 0, "source": "for epoch in range(9):", "does": "", "certain": True,
    }  # fmt: skip
    assert found["nobody_updates"] == ["Linear.weight", "Linear.bias"]
    assert found["gaps"] == []


def test_the_files_beside_a_script_are_read_also_if_it_is_named_without_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "steps.py").write_text("def step(loss):\n    loss.backward()\n", "utf-8")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom steps import step\nstep(torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum())\n", "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "train.py"]) == 0
    assert "steps.py:2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("nowhere.py", "nowhere.py: no such file"),
        (".", ".: a folder; name a file"),
        ("train.py:fit", "train.py: no function or method fit"),
        ("broken.py", "broken.py: this is no Python that can be read; `ta-lint check broken.py` says where"),
    ],
)
def test_what_cannot_be_told_is_an_error_that_names_it(
    argument: str,
    complaint: str,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(script.parent)
    Path("broken.py").write_text("def f(:\n", "utf-8")
    assert main(["explain", argument]) == 2
    assert complaint in capsys.readouterr().err


def test_the_page_shows_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    (shown,) = re.findall(
        r"\$ (ta-lint explain .*)\n((?s:.*?))```", (root / "docs" / "explain.md").read_text("utf-8")
    )
    assert main(shown[0].split()[1:]) == 0
    assert capsys.readouterr().out == shown[1]


def test_a_file_that_trains_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sums.py"
    path.write_text("print(1 + 1)\n", "utf-8")
    assert main(["explain", str(path)]) == 0
    assert (
        capsys.readouterr().out == f"{path}: nothing here trains: no call of a model, no loss, no optimizer\n"
    )


def test_a_loss_through_rounding_reaches_nothing(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\nloss = torch.nn.Linear(4, 4)(torch.ones(4)).round().mean()\nloss.backward()\n"
    )
    [line] = [line for line in told(script) if "backward" in line]
    assert line.endswith("gradients reach 0 parameters; the graph was lost: a gradient of zero")
