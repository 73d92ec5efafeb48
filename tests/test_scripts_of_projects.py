"""Each script of a project is run dry once, and what it shows counts in whatever file that is."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ta_lint import scripts
from ta_lint.core.config import Configs, Options
from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.run import run_of
from ta_lint.engine import lint_file
from ta_lint.events.event import Event
from ta_lint.events.run import Run
from ta_lint.file import File
from ta_lint.project.project import renew


def found(folder: Path, given: tuple[str, str] | None = None, **files: str) -> dict[str, set[str]]:
    """The rules that are found in each of these files, of which one is `given` instead of read."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    renew()
    config = Configs(Options(isolated=True), folder).root_config
    name, text = given or ("", "")
    read = {name: text.encode()}
    return {
        name: {
            one.rule
            for one in lint_file(File(folder / f"{name}.py", f"{name}.py", config, given=read.get(name)))
        }
        for name in files
    }


STEP = """
import torch


def step(model, optimizer, batch):
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
"""
LOOP = """
from step import step


def train(model, optimizer, batches):
    for batch in batches:
        step(model, optimizer, batch)
"""
LAUNCHER = """
import torch
from loop import train

model = torch.nn.Linear(2, 2)
train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=2))
"""


def test_a_script_finds_a_bug_two_imports_away(tmp_path: Path) -> None:
    rules = found(tmp_path, step=STEP, loop=LOOP, launcher=LAUNCHER)
    assert rules["step"] == {"TA600"}
    assert rules["loop"] == rules["launcher"] == set()


def test_without_the_script_nobody_knows_what_clears(tmp_path: Path) -> None:
    assert found(tmp_path, step=STEP)["step"] == set()


EVALUATION = """
import torch


def evaluate(model, batches):
    model.eval()
    right = 0
    for inputs, targets in batches:
        right += (model(inputs).argmax(1) == targets).sum().item()
    return right
"""
CALLS = {
    "certainly": "evaluate(model, batches)",
    "perhaps": "if input():\n        evaluate(model, batches)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_how_a_script_calls_a_function_is_not_guessed(call: str, tmp_path: Path) -> None:
    script = (
        "import torch\nfrom evaluation import evaluate\nfrom data import batches\n\nmodel = torch.nn.Linear(2, 2)\n"
        f"with torch.no_grad():\n    {call}\n"
    )
    assert found(tmp_path, evaluation=EVALUATION)["evaluation"] == {"TA613"}
    assert found(tmp_path, evaluation=EVALUATION, script=script)["evaluation"] == set()


def test_a_method_that_nobody_calls_runs_on_the_object_that_a_script_makes(tmp_path: Path) -> None:
    trainer = "import torch\n\n\nclass Trainer:\n    def __init__(self, optimizer):\n        self.tool = optimizer\n\n"
    trainer += "    def faster(self):\n        self.tool.lr = 0.5\n"
    script = "import torch\nfrom trainer import Trainer\n\nmodel = torch.nn.Linear(2, 2)\n"
    script += "trainer = Trainer(torch.optim.SGD(model.parameters(), lr=0.1))\nmodel(torch.ones(2)).sum().backward()\ntrainer.tool.step()\n"
    assert found(tmp_path, trainer=trainer)["trainer"] == set()
    assert found(tmp_path, trainer=trainer, script=script)["trainer"] == {"TA426"}


def test_each_script_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()
    make = scripts.DryRuns._make

    def counted(project: scripts.DryRuns, path: str) -> Any:
        ran[Path(path).stem] += 1
        return make(project, path)

    monkeypatch.setattr(scripts.DryRuns, "_make", counted)
    found(tmp_path, step=STEP, loop=LOOP, launcher=LAUNCHER)
    assert ran == {"step": 1, "loop": 1, "launcher": 1}


def test_an_unsaved_text_is_what_the_scripts_import(tmp_path: Path) -> None:
    cleared = STEP.replace("    loss.backward", "    optimizer.zero_grad()\n    loss.backward")
    assert found(tmp_path, given=("step", cleared), step=STEP, loop=LOOP, launcher=LAUNCHER)["step"] == set()
    assert found(tmp_path, step=STEP, loop=LOOP, launcher=LAUNCHER)["step"] == {"TA600"}


CLASSIFIER = """
import torch


class Classifier:
    def __init__(self):
        self.encoder = torch.nn.Linear(4, 2)

    def save(self, path, step, optimizer=None):
        checkpoint = {"encoder": self.encoder.state_dict(), "step": step}
        if optimizer is not None:
            checkpoint["optimizer"] = optimizer.state_dict()
        torch.save(checkpoint, path)

    def restore(self, path, optimizer=None):
        checkpoint = torch.load(path, weights_only=True)
        self.encoder.load_state_dict(checkpoint["encoder"])
        if optimizer is not None:
            optimizer.load_state_dict(checkpoint["optimizer"])
        return checkpoint["step"]
"""
SAVES = """
import torch
from classifier import Classifier

model = Classifier()
optimizer = torch.optim.Adam(model.encoder.parameters())
for step, batch in enumerate(torch.randn(8, 3, 4)):
    optimizer.zero_grad()
    model.encoder(batch).mean().backward()
    optimizer.step()
    model.save("last.pt", step)
"""


def test_a_load_that_is_guessed_says_nothing_of_what_a_script_saves(tmp_path: Path) -> None:
    assert found(tmp_path, classifier=CLASSIFIER, script=SAVES)["classifier"] == set()


TRAINING = """
import torch
from parts import prepared

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in prepared():
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("imported", [100, 3_000])
def test_a_short_script_comes_to_its_end_however_long_is_what_it_imports(
    imported: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: dict[str, Run] = {}

    def told(events: list[Event]) -> Run:
        (path,) = {event.place.file for event in events if event.action == Action.STEP} or {""}
        ran[Path(path).stem] = run_of(events)
        return ran[Path(path).stem]

    monkeypatch.setattr(scripts, "run_of", told)
    body = "    size = size + 1\n" * imported
    parts = f"import torch\n\ndef prepared():\n    size = 1\n{body}    return [torch.ones(2, 4)]\n"
    found(tmp_path, main=TRAINING, parts=parts)
    assert not ran["main"].broke_off
