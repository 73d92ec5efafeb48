"""What TrainCheck 0.2.0 gets wrong on a real run, and ours must not: the list is in `docs/from-traincheck.md`."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from commands import Ran, ta_runtime
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ta_runtime.cli import main
from ta_runtime.invariants.invariant import ATTRIBUTES
from ta_runtime.trace.event import Event, Flag
from ta_runtime.trace.tracer import Tracer

SECRET = "correct-horse-battery-staple"
PAGE = (Path(__file__).parents[1] / "docs" / "from-traincheck.md").read_text(encoding="utf-8")


def traced(train: Callable[[], object]) -> list[Event]:
    events: list[Event] = []
    with Tracer(events.append):
        train()
    return events


class Holding(nn.Module):
    """A layer beside a buffer."""

    def __init__(self, state: Tensor) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.register_buffer("state", state)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(x)
        return result


# -- the hash of the first row, times 1e8 ---------------------------------------------------------------------


def test_a_change_of_the_last_row_of_a_weight_is_seen() -> None:
    model = nn.Linear(64, 64, bias=False)
    mask = torch.zeros(64, 1)
    mask[63] = 1
    model.weight.register_hook(lambda gradient: gradient * mask)  # type: ignore[no-untyped-call]
    first = model.weight[:63].clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 64)).square().mean().backward()
            optimizer.step()

    weights = [event for event in traced(train) if (event.kind, event.subject) == ("parameter", "weight")]
    assert model.weight[:63].equal(first)
    assert [bool(event.flags & Flag.CHANGED) for event in weights[1:]] == [True, True]
    assert len({event.digest for event in weights}) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(torch.tensor([1.5, 2.5]).half(), torch.tensor([4.5, 7.5]).half(), id="float16, times three"),
        pytest.param(torch.tensor([torch.nan]), torch.tensor([torch.inf]), id="NaN and infinity"),
        pytest.param(torch.tensor([1e-9]), torch.tensor([2e-9]), id="less than 1e-8"),
        pytest.param(torch.tensor([True, False]), torch.tensor([True, True]), id="bool"),
        pytest.param(torch.tensor([1 + 1j]), torch.tensor([1 - 1j]), id="complex"),
        pytest.param(torch.ones(8).to(torch.float8_e4m3fn), torch.zeros(8).to(torch.float8_e4m3fn), id="float8"),
    ],
)  # fmt: skip
def test_a_change_of_any_dtype_is_seen(before: Tensor, after: Tensor) -> None:
    model = Holding(before)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        for state in (before, before, after):
            model.state = state.clone()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()

    buffers = [event for event in traced(train) if event.kind == "buffer"]
    assert all(event.digest is not None for event in buffers)
    assert [bool(event.flags & Flag.CHANGED) for event in buffers[1:]] == [False, True]


# -- steps ----------------------------------------------------------------------------------------------------


def test_the_loop_over_epochs_is_no_step_and_the_last_step_is_whole() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=4)

    def train_epoch() -> None:
        for (inputs,) in loader:
            optimizer.zero_grad()
            model(inputs).sum().backward()
            optimizer.step()

    def train() -> None:
        for _ in range(4):
            train_epoch()

    parameters = Counter(event.step for event in traced(train) if event.kind == "parameter")
    assert parameters == dict.fromkeys(range(12), 4)


# -- as commands ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Ran]]:
    """The folder in which the commands of the page were run, and how each of them ended."""
    folder = tmp_path_factory.mktemp("page")
    (script,) = re.findall(r"```python title=train.py\n(.*?)```", PAGE, re.DOTALL)
    (folder / "train.py").write_text(script)
    ran = {
        command: ta_runtime(folder, *shlex.split(command), timeout=240, SERVICE_TOKEN=SECRET)
        for command in re.findall(r"^\$ ta-runtime (.*)$", PAGE, re.MULTILINE)
    }
    return folder, ran


def test_the_commands_of_the_page_print_what_it_shows(shown: tuple[Path, dict[str, Ran]]) -> None:
    """D11: in the order in which they print it; `...` stands for lines that are left out."""
    _, ran = shown
    outputs = re.findall(r"^\$ ta-runtime (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.MULTILINE)
    assert len(outputs) == len(ran) == 4
    for command, output in outputs:
        printed = "\n".join(
            line.rstrip() for line in (ran[command].stdout + ran[command].stderr).splitlines()
        )
        blocks = [
            re.sub(r"Looked\\ at\\ \d+", r"Looked\\ at\\ \\d+", re.escape(block))  # what the machine affords
            for block in re.split(r"^\.\.\.\n", output, flags=re.MULTILINE)
        ]
        assert re.fullmatch(r"(?:.*\n)*".join(blocks), f"{printed}\n"), f"{command}\n{printed}"


def test_the_exit_status_says_whether_something_is_broken(shown: tuple[Path, dict[str, Ran]]) -> None:
    _, ran = shown
    assert [one.returncode for one in ran.values()] == [0, 0, 0, 1]


def test_nothing_is_broken_by_the_program_that_was_learned_from(
    shown: tuple[Path, dict[str, Ran]], capfd: pytest.CaptureFixture[str]
) -> None:
    folder, _ = shown
    healthy, invariants = str(folder / "healthy"), str(folder / "invariants.json")
    assert main(["check", healthy, "-i", invariants, "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out) == []


def test_every_step_in_which_one_is_broken_is_counted(shown: tuple[Path, dict[str, Ran]]) -> None:
    _, ran = shown
    *_, broken = ran.values()
    table = broken.stdout + broken.stderr
    assert re.findall(r"^TA510  error  train.py:15     0     (\d+)", table, re.MULTILINE) == [
        "11",  # modules in the first ten steps and, where the step before was looked into, each tenth
        "40",
    ]


def test_no_environment_variable_is_in_a_trace(shown: tuple[Path, dict[str, Ran]]) -> None:
    folder, _ = shown
    [part] = (folder / "healthy" / "events").iterdir()
    assert SECRET not in (folder / "healthy" / "rank0.json").read_text()
    assert SECRET not in str(pq.read_table(part).to_pydict())


def test_nothing_is_written_beside_the_script(shown: tuple[Path, dict[str, Ran]]) -> None:
    folder, _ = shown
    assert {path.name for path in folder.iterdir()} == {"train.py", "healthy", "invariants.json"}


def test_conditions_are_never_about_steps_or_processes(shown: tuple[Path, dict[str, Ran]]) -> None:
    folder, _ = shown
    learned = json.loads((folder / "invariants.json").read_text())["invariants"]
    assert len(learned) > 10
    assert {name for invariant in learned for name in invariant["where"]} <= set(ATTRIBUTES)
