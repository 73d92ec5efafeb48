"""What `enable(record=...)` writes of a run: the numbers of its steps, as they were, whatever ends it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import commands
import pytest
import torch
import torch.distributed as dist
from runtime import Counted, training
from test_bitwise import cnn, outcome, same
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

import ta_runtime
from ta_lint.core.errors import UsageError
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.recorder import Recorder
from ta_runtime.cli import main
from ta_runtime.integrations.watch import Watch
from ta_runtime.probes.patching import original
from ta_runtime.runs import Run
from ta_runtime.settings import resolve

Rows = dict[tuple[int, str], float]


@contextmanager
def recording(folder: Path, **options: Any) -> Iterator[Audit]:
    """An audit of every training in this process that is recorded."""
    audit = Audit(resolve(record=folder, live=False, **options))
    audit.start()
    try:
        yield audit
    finally:
        audit.stop()


def metrics(folder: Path, rank: int = 0) -> Rows:
    """By step and key, each of which comes once."""
    rows = [row for row in Run(folder).metrics.to_pylist() if row["rank"] == rank]
    found = {(row["step"], row["key"]): row["value"] for row in rows}
    assert len(found) == len(rows)
    return found


def steps(folder: Path, key: str = "step/loss") -> list[int]:
    return [step for step, name in metrics(folder) if name == key]


def keys(folder: Path) -> set[str]:
    return {key for _, key in metrics(folder)}


def norm(tensor: Tensor | None) -> float:
    assert tensor is not None
    return torch.linalg.vector_norm(tensor.detach()).item()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(inputs))


def train(count: int, model: nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None) -> None:
    model = model or Net()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.randn(6, 8)).square().mean().backward()
        optimizer.step()


# -- the numbers ----------------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_training(tmp_path: Path) -> None:
    """With micro-batches, a scaler, clipping and a schedule; measured beside it, by the loop itself."""
    torch.manual_seed(0)
    expected: Rows = {}
    with recording(tmp_path / "run", every_n_steps=7, rules="TA100"):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
        for name, layer in (("body.0", model.body[0]), ("head", model.head)):
            layer.register_forward_hook(
                lambda _, __, output, name=name: outputs[name].append(output.detach().clone())
            )
        for step in range(22):
            outputs: dict[str, list[Tensor]] = {name: [] for name in ("body.0", "head")}
            losses = []
            optimizer.zero_grad()
            for _ in range(2):
                loss = cross_entropy(model(torch.randn(6, 8)), torch.randint(0, 3, (6,))) / 2
                scaler.scale(loss).backward()
                losses.append(loss.item())
            scaler.unscale_(optimizer)
            expected[step, "step/gradient_norm"] = float(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
            expected[step, "step/loss"] = sum(losses) / 2
            expected[step, "step/learning_rate"] = optimizer.param_groups[0]["lr"]
            audited = step % 7 == 0
            before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
            for name, parameter in model.named_parameters():
                if audited or step % 10 == 0:
                    expected[step, f"gradient/{name}/norm"] = norm(parameter.grad)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            for name, parameter in model.named_parameters():
                if audited:
                    expected[step, f"parameter/{name}/norm"] = norm(parameter)
                    if parameter.dim() > 1:
                        change = norm(parameter - before[name])
                        expected[step, f"update/{name}/ratio"] = change / norm(before[name])
            for name, found in outputs.items():
                if audited:
                    rms = torch.cat(found).square().mean().sqrt()
                    expected[step, f"activation/{name}/rms"] = float(rms)
    found = metrics(tmp_path / "run")
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-5)  # type: ignore[call-overload]
    assert {key for _, key in found} - {key for _, key in expected} == {
        "step/seconds",
        "activation/body.1/rms",
        "memory/process",
    }
    assert [step for step, key in found if key == "step/seconds"] == list(range(1, 22))


def test_what_is_not_finite_is_recorded_as_it_is(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with recording(tmp_path / "run"):
        for value in (1.0, float("inf")):
            optimizer.zero_grad()
            (model(torch.ones(3, 4)).sum() * value).backward()
            optimizer.step()
    found = metrics(tmp_path / "run")
    assert abs(found[1, "step/loss"]) == float("inf")
    assert found[1, "step/gradient_norm"] == float("inf")


class Slow(Dataset[Tensor]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(0.002)
        return torch.ones(8)


def test_the_time_that_a_step_waits_for_its_loader_is_a_part_of_its_time(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with recording(tmp_path / "run", every_n_steps=0):
        for _ in range(2):
            for batch in DataLoader(Slow(), batch_size=2):
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
    found = metrics(tmp_path / "run")
    assert steps(tmp_path / "run", "step/waited_seconds") == list(range(6))
    for step in range(6):
        assert found[step, "step/waited_seconds"] >= 0.004
        assert step == 0 or found[step, "step/waited_seconds"] < found[step, "step/seconds"]


def test_nothing_is_said_of_waiting_where_nobody_asks_a_loader(tmp_path: Path) -> None:
    with recording(tmp_path / "run"):
        train(3)
    assert "step/waited_seconds" not in keys(tmp_path / "run")


def test_the_time_between_two_trainings_is_no_time_of_a_step(tmp_path: Path) -> None:
    """As one that Lightning runs twice: the audit goes on where it was."""
    watch = Watch({"record": tmp_path / "run", "output": None, "live": False})
    for _ in range(2):
        watch.begin()
        train(2)
        watch.end()
    assert steps(tmp_path / "run") == [0, 1, 2, 3]
    assert steps(tmp_path / "run", "step/seconds") == [1, 3]


def test_steps_that_are_not_looked_at_are_not_recorded(tmp_path: Path) -> None:
    with recording(tmp_path / "run", every_n_steps=0, gradients_every_n_steps=3):
        train(32)
    assert steps(tmp_path / "run") == list(range(0, 32, 3))
    assert steps(tmp_path / "run", "gradient/head.weight/norm") == [0, 30]
    assert {key.split("/")[0] for key in keys(tmp_path / "run")} == {"step", "gradient", "memory"}


def test_where_only_a_part_of_the_gradients_is_clipped_the_norm_is_that_of_all(tmp_path: Path) -> None:
    with recording(tmp_path / "run"):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(6, 8)).square().sum().backward()
        whole = norm(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
        nn.utils.clip_grad_norm_(model.body[1].parameters(), 1e3)
        optimizer.step()
    assert metrics(tmp_path / "run")[0, "step/gradient_norm"] == pytest.approx(whole)


# -- names ----------------------------------------------------------------------------------------------------


class Critic(Net):
    pass


def test_a_second_model_and_its_optimizer_have_keys_of_their_own(tmp_path: Path) -> None:
    with recording(tmp_path / "run", every_n_steps=1):
        made, critic = Net(), Critic()
        first = torch.optim.SGD(made.parameters(), lr=0.1)
        second = torch.optim.SGD(critic.parameters(), lr=0.2)
        for _ in range(3):
            for model, optimizer in ((made, first), (critic, second)):
                optimizer.zero_grad()
                model(torch.randn(6, 8)).square().mean().backward()
                optimizer.step()
    found = metrics(tmp_path / "run")
    assert [found[2, f"step/learning_rate{suffix}"] for suffix in ("", "/1")] == [0.1, 0.2]
    assert {"step/loss", "step/loss/1", "step/gradient_norm/1", "step/seconds"} <= keys(tmp_path / "run")
    assert found[2, "parameter/head.weight/norm"] == pytest.approx(norm(made.head.weight))
    assert found[2, "parameter/Critic.head.weight/norm"] == pytest.approx(norm(critic.head.weight))
    assert {"gradient/Critic.body.0.bias/norm", "activation/Critic.head/rms"} <= keys(tmp_path / "run")


def test_a_model_that_takes_the_place_of_another_has_its_keys(tmp_path: Path) -> None:
    """As those of a cross validation."""
    with recording(tmp_path / "run", every_n_steps=4):
        for _ in range(3):
            train(4)
    assert {key.removeprefix("gradient/").removesuffix("/norm") for key in keys(tmp_path / "run") if "grad" in key} == {
        "step/gradient_norm", *(name for name, _ in Net().named_parameters())
    }  # fmt: skip
    assert steps(tmp_path / "run", "step/learning_rate") == list(range(12))


def test_a_compiled_model_has_the_names_of_the_one_that_it_was_made_from(tmp_path: Path) -> None:
    with recording(tmp_path / "run", every_n_steps=1):
        criterion = nn.MSELoss()
        model = Net()
        compiled = torch.compile(model, backend="eager")
        optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
        for _ in range(2):
            criterion(compiled(torch.randn(6, 8)), torch.zeros(6, 3)).backward()
            optimizer.step()
    found = metrics(tmp_path / "run")
    for name, parameter in model.named_parameters():
        assert found[1, f"gradient/{name}/norm"] == pytest.approx(norm(parameter.grad))
        assert found[1, f"parameter/{name}/norm"] == pytest.approx(norm(parameter))


def test_a_model_that_is_built_and_not_trained_takes_no_name(tmp_path: Path) -> None:
    with recording(tmp_path / "run", every_n_steps=0):
        other = Net()
        train(2)
    assert (0, "gradient/head.weight/norm") in metrics(tmp_path / "run")
    assert other.head.weight.grad is None


def test_parameters_of_models_that_nobody_saw_are_named_by_their_place(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(3, 2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with recording(tmp_path / "run"):
        weight.sum().backward()
        optimizer.step()
    found = metrics(tmp_path / "run")
    assert found[0, "gradient/parameter 0 of group 0/norm"] == pytest.approx(6**0.5)
    assert found[0, "parameter/parameter 0 of group 0/norm"] == pytest.approx(norm(weight))


# -- the run is what it would have been -----------------------------------------------------------------------


def counted(every_n_steps: int, folder: Path | None) -> tuple[Counted, int]:
    """The operations of 11 steps after some others, and how many functions Python calls in 11 more."""
    watched = training("mlp")
    settings = resolve(every_n_steps=every_n_steps, record=folder, live=False)
    audit = Audit(settings, models=[watched.model], optimizers=[watched.optimizer])
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    audit.start()
    try:
        for _ in range(3):
            watched.step()
        with Counted() as counts:
            for _ in range(11):
                watched.step()
        original(sys.setprofile)(count)  # it sees our frames too
        for _ in range(11):
            watched.step()
    finally:
        sys.setprofile(None)
        audit.stop()
    return counts, calls


@pytest.mark.parametrize("every_n_steps", [0, 1])
def test_recording_adds_no_operation_and_no_waiting(every_n_steps: int, tmp_path: Path) -> None:
    """As what waits for a device is an operation too."""
    plain, _ = counted(every_n_steps, None)
    recorded, _ = counted(every_n_steps, tmp_path / "run")
    assert recorded.operations == plain.operations
    assert steps(tmp_path / "run") == list(range(25))


def test_recording_costs_a_step_few_calls_of_functions(tmp_path: Path) -> None:
    """Of Python: counted, as seconds say little on a machine that others use."""
    _, plain = counted(0, None)
    _, recorded = counted(0, tmp_path / "run")
    assert 0 < recorded - plain < 11 * 60 + 7 * 110  # at steps 0, 2, 4, 8 and so on the report is written


def test_a_run_that_is_recorded_is_bitwise_what_it_would_have_been(tmp_path: Path) -> None:
    expected = outcome(cnn)
    with recording(tmp_path / "run", every_n_steps=1, snapshots="every 2"):
        found = outcome(cnn)
    assert same(expected, found)
    assert steps(tmp_path / "run") == list(range(6))


def test_nothing_of_a_step_is_kept_alive_by_its_record(tmp_path: Path) -> None:
    with recording(tmp_path / "run", every_n_steps=1) as audit:
        train(3)
        audit.session.flush()
        assert audit.recorder is not None
        assert len(audit.recorder._curves._optimizers) == len(audit.recorder._tensors) == 0


def test_a_recorder_that_fails_says_so_once_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Recorder, "_of_gradients", lambda *_: 1 / 0)
    with recording(tmp_path / "run") as audit:
        train(3)
    assert audit.session.step_count == 3
    assert "TA000" not in {finding.rule for finding in audit.findings}
    assert capsys.readouterr().err.count("ZeroDivisionError: division by zero; the training goes on") == 1


# -- from the start to the end --------------------------------------------------------------------------------

SCRIPT = """\
import os, shutil, signal, sys
import torch, ta_runtime
from ta_runtime.runs import writer

{before}
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.1)
for step in range(6):
    if step == 4:
        {at_4}
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
print("trained")
"""
ENABLE = "ta_runtime.enable(record='run', output=None, live=False)"

# One process loads all, and forks one for each folder.
EACH = """\
import gc, os, runpy, sys
import rich.console, torch, torch._dynamo, ta_runtime.audit.recorder
from pathlib import Path
from ta_runtime.audit.audit import Audit
from ta_runtime.cli import main
from ta_runtime.settings import resolve

Audit(resolve())
gc.freeze()
for folder in sys.argv[1:]:
    if not os.fork():
        os.chdir(folder)
        for descriptor, name in ((1, "printed"), (2, "told")):
            os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), descriptor)
        if folder.startswith("command"):
            sys.exit(main(["run", "--record", "run", "train.py"]))
        sys.argv = ["train.py"]
        runpy.run_path("train.py", run_name="__main__")
        sys.exit()
    (Path(folder) / "status").write_text(str(os.waitstatus_to_exitcode(os.wait()[1])))
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a process that was recorded and that ended in a way, by the function or by the command."""
    top = tmp_path_factory.mktemp("ended")
    folders = {}
    for number, ending in enumerate(ENDINGS):
        for way, enable in (("api", ENABLE), ("command", ""))[: 1 if ending in (KILLED, KILLED_EARLY) else 2]:
            folders[way, ending] = folder = top / f"{way}{number}"
            folder.mkdir()
            (folder / ".git").mkdir()
            at_once = "writer.ROWS = 1\n" if ending == KILLED else ""
            (folder / "train.py").write_text(SCRIPT.format(before=at_once + enable, at_4=ending))
    ran = commands.warm(top, "-c", EACH, *(folder.name for folder in folders.values()), timeout=300)
    assert ran.returncode == 0, ran.stderr
    return lambda way, ending: folders[way, ending]


EXCEPTION, CTRL_C, EXIT = "raise ValueError('x')", "os.kill(os.getpid(), signal.SIGINT)", "sys.exit(3)"
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
KILLED_EARLY = f"{KILLED}  # with rows that wait"
DISABLED, GONE, NOTHING = "ta_runtime.disable()", "shutil.rmtree('run')", "pass"
ENDINGS = (EXCEPTION, CTRL_C, EXIT, KILLED, KILLED_EARLY, DISABLED, GONE, NOTHING)


@pytest.mark.parametrize(
    ("way", "ending", "status", "expected"),
    [
        ("api", EXCEPTION, 1, [0, 1, 2, 3]),
        ("command", EXCEPTION, 1, [0, 1, 2, 3]),
        ("api", CTRL_C, -2, [0, 1, 2, 3]),
        ("command", CTRL_C, 130, [0, 1, 2, 3]),
        ("command", EXIT, 3, [0, 1, 2, 3]),
        ("api", KILLED, -9, [0, 1, 2, 3]),  # numbers in host memory are written with their step
        ("api", KILLED_EARLY, -9, [0]),
        ("api", NOTHING, 0, [0, 1, 2, 3, 4, 5]),
        ("command", NOTHING, 0, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_what_ends_a_run_does_not_end_its_record(
    way: str, ending: str, status: int, expected: list[int], ended: Callable[..., Path]
) -> None:
    """A kill leaves what was written by then, all else every step."""
    folder = ended(way, ending)
    assert steps(folder / "run") == expected
    assert [item["rule"] for item in Run(folder / "run").findings or ()] == ["TA401"]
    assert not list(folder.rglob("*.part"))
    assert (folder / "status").read_text() == str(status)


def test_disable_ends_the_record_and_not_that_of_the_command(ended: Callable[..., Path]) -> None:
    assert steps(ended("api", DISABLED) / "run") == [0, 1, 2, 3]
    assert steps(ended("command", DISABLED) / "run") == [0, 1, 2, 3, 4, 5]


def test_a_folder_that_goes_while_the_run_goes_on_is_told_once_and_leaves_the_exit_status(
    ended: Callable[..., Path],
) -> None:
    for way, status in (("api", "0"), ("command", "0")):
        folder = ended(way, GONE)
        assert (folder / "printed").read_text() == "trained\n"
        assert (folder / "status").read_text() == status
        assert (folder / "told").read_text().count("cannot") == 1
        assert not (folder / "run").exists()


def test_the_command_says_where_the_run_is(ended: Callable[..., Path]) -> None:
    told = (ended("command", NOTHING) / "told").read_text()
    assert "\nta-runtime: the run is in run; `ta-runtime report run` makes a page of it\n" in told
    assert "findings.json" not in told
    assert (ended("api", NOTHING) / "told").read_text() == ""


def test_the_command_refuses_what_is_no_folder_for_a_run_before_the_script_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print('begun')\n")
    for words, told in {
        ("--record", "train.py"): "train.py: is a file; name a folder for the run",
        (
            "--snapshots",
            "first 3",
        ): "--snapshots: needs --record DIR, the folder of the run",
    }.items():
        assert main(["run", *words, "train.py"]) == 2
        assert capsys.readouterr() == ("", f"ta-runtime: error: {told}\n")


def test_enable_records_until_disable_and_each_time_into_a_folder_of_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ta_runtime.enable(record=tmp_path / name, output=None, live=False)
        train(2)
        ta_runtime.disable()
        train(1)
        assert steps(tmp_path / name) == [0, 1]
    ta_runtime.enable(record=tmp_path / "b", output=None, live=False)
    train(3)
    ta_runtime.disable()
    assert (steps(tmp_path / "b"), steps(tmp_path / "b-2")) == ([0, 1], [0, 1, 2])


def test_an_auditor_records_its_own_model(tmp_path: Path) -> None:
    model, other = Net(), Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ta_runtime.Auditor(
        model,
        optimizer,
        start_step=100,
        ignore_rules="TA400,TA304",
        record=tmp_path / "run",
        snapshots="first 1",
    ) as auditor:
        train(2, model, optimizer)
        train(3, other)
    assert steps(tmp_path / "run") == [100, 101]
    assert Run(tmp_path / "run").findings == []
    assert auditor.findings == []
    records = Run(tmp_path / "run").records.to_pylist()
    assert {row["step"] for row in records} == {-1, 100}
    assert {row["name"] for row in records if row["kind"] == "parameter"} == {
        name for name, _ in model.named_parameters()
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"record": 3}, "record: 3 is not the path of a folder"),
        (
            {"snapshots": "first 3"},
            "snapshots: need the folder of the run, such as record='runs/1'",
        ),
        ({"record": "run", "snapshots": "often"}, "snapshots: 'often' is not a schedule"),
    ],
)
def test_what_cannot_be_recorded_is_said_before_the_training(
    options: dict[str, object], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as raised:
        ta_runtime.enable(output=None, **options)
    assert told in str(raised.value)


def test_snapshots_are_taken_by_their_schedule_and_when_a_finding_opens(tmp_path: Path) -> None:
    with recording(tmp_path / "run", snapshots="at 3, on incident"):
        model = nn.Linear(8, 3)
        train(8, model, torch.optim.Adam(model.parameters(), weight_decay=0.1))
    taken = {row["step"] for row in Run(tmp_path / "run").records.to_pylist()}
    assert taken == {-1, 1, 3}  # TA401 opens at once


# -- processes ------------------------------------------------------------------------------------------------


def test_children_and_workers_of_loaders_write_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import multiprocessing, os, sys\n"
        "import torch, ta_runtime\n"
        "ta_runtime.enable(record='run', output=None, live=False, snapshots='first 1')\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "def step():\n"
        "    model = torch.nn.Linear(4, 2)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    def once(batch):\n"
        "        model(batch).square().mean().backward()\n"
        "        optimizer.step()\n"
        "    return once\n"
        "if __name__ == '__main__':\n"
        "    once = step()\n"
        "    for context in ('fork', 'spawn'):\n"
        "        data = TensorDataset(torch.ones(8, 4))\n"
        "        for [batch] in DataLoader(data, batch_size=2, num_workers=1, multiprocessing_context=context):\n"
        "            once(batch)\n"
        "    child = multiprocessing.get_context('fork').Process(target=lambda: once(torch.zeros(2, 4)))\n"
        "    child.start(); child.join(); assert child.exitcode == 0\n"
    )
    ran = commands.warm(tmp_path, "train.py", RANK="0", WORLD_SIZE="1")
    assert (ran.returncode, ran.stderr) == (0, "")
    run = Run(tmp_path / "run")
    assert list(run.about) == [0]
    assert steps(tmp_path / "run") == list(range(8))
    assert {row["step"] for row in run.records.to_pylist()} == {-1, 0}


def test_torchrun_gives_each_attempt_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempt in ("0", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", attempt)
        with recording(tmp_path / "run") as audit:
            train(2)
        assert audit.recorder is not None
    assert steps(tmp_path / "run") == steps(tmp_path / "run.restart1") == [0, 1]


RANKS = """\
import os
import torch, ta_runtime, ta_runtime.audit.recorder
import torch.distributed as dist
import torch.multiprocessing as mp


def main(rank, folder):
    if folder == "torchrun":
        os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    ta_runtime.enable(record=folder, output=None, live=False, snapshots="first 1")
    store = dist.FileStore(folder + ".store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.1)
    torch.manual_seed(rank)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


for folder in ("torchrun", "start"):
    mp.start_processes(main, (folder,), nprocs=2, start_method="fork")
"""


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_each_rank_records_itself_and_rank_0_has_the_findings_of_all(tmp_path: Path) -> None:
    """Started by torchrun, ranks are known at once; else when they join their group, after `enable`."""
    (tmp_path / "train.py").write_text(RANKS)
    ran = commands.warm(tmp_path, "train.py")
    assert (ran.returncode, ran.stderr) == (0, "")
    for folder in (tmp_path / "torchrun", tmp_path / "start"):
        run = Run(folder)
        assert {rank: about["world_size"] for rank, about in run.about.items()} == {0: 2, 1: 2}
        first, second = metrics(folder, 0), metrics(folder, 1)
        assert first.keys() == second.keys() >= {(step, "step/loss") for step in range(3)}
        assert first[0, "step/loss"] != second[0, "step/loss"]
        assert first[0, "step/gradient_norm"] == second[0, "step/gradient_norm"]
        assert {(row["rank"], row["step"]) for row in run.records.to_pylist()} >= {
            (0, -1),
            (1, -1),
            (0, 0),
            (1, 0),
        }
        [found] = run.findings or []
        assert (found["rule"], found["evidence"]["ranks"]) == ("TA401", "0,1")
        assert not list(folder.glob("findings.rank1*"))


# -- what the run is set to -----------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    ran = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


SET_UP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(7)
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW([
    {"params": [model.weight], "weight_decay": 0.1, "name": "decayed"}, {"params": [model.bias], "lr": torch.tensor(0.5)},
])
for x in DataLoader(torch.randn(24, 4), batch_size=4):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
for x in DataLoader(torch.randn(24, 4), batch_size=24):
    model(x)
"""


def test_a_run_says_its_commit_optimizers_batch_size_seed_and_device(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SET_UP)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    for folder, is_dirty in (("clean", False), ("dirty", True)):
        ran = commands.ta_runtime(tmp_path, "run", "-q", "--record", folder, "train.py")
        assert ran.returncode == 0, ran.stderr
        assert Run(tmp_path / folder).about[0]["git"] == {"commit": head, "dirty": is_dirty}
        (tmp_path / "train.py").write_text(f"{SET_UP}# changed\n")
    about = Run(tmp_path / "clean").about[0]
    assert (about["batch_size"], about["seed"], about["device"]) == ([4], 7, {"name": "cpu"})
    [optimizer] = about["optimizers"]
    first, second = optimizer["groups"]
    assert (optimizer["class"], first["lr"], first["betas"], first["name"]) == (
        "AdamW",
        0.001,
        [0.9, 0.999],
        "decayed",
    )
    assert (first["weight_decay"], second["weight_decay"]) == (0.1, 0.01)
    assert (first["elements"], second["elements"]) == (8, 2)
    assert not {"params", "foreach", "maximize"} & {*first, *second}
    assert second["lr"] == 0.5
    assert metrics(tmp_path / "clean")[0, "memory/process"] > 1e7


def test_a_run_without_git_seed_and_loader_says_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "initial_seed", lambda: 1 << 60)
    monkeypatch.setenv("PATH", "")
    with recording(tmp_path / "run"):
        train(2)
    about = Run(tmp_path / "run").about[0]
    assert about["git"] is None
    assert not {"seed", "batch_size"} & about.keys()
    assert [optimizer["class"] for optimizer in about["optimizers"]] == ["SGD"]


def test_an_optimizer_that_joins_later_is_told_of_as_well(tmp_path: Path) -> None:
    first, second = Net(), Net()
    optimizers = [torch.optim.SGD(first.parameters(), lr=0.1), torch.optim.Adam(second.parameters())]
    with recording(tmp_path / "run"):
        train(3, first, optimizers[0])
        assert '"SGD"' in (tmp_path / "run" / "rank0.json").read_text()  # while the run goes on
        train(3, second, optimizers[1])
    assert [each["class"] for each in Run(tmp_path / "run").about[0]["optimizers"]] == ["SGD", "Adam"]
