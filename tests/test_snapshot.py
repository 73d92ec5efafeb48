"""What a snapshot records of a training, when, and that the training does not notice."""

import math
import os
import random
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import commands
import duckdb
import numpy as np
import pytest
import test_bitwise
import torch
import torch.distributed as dist
import yaml
from photograph import watched
from runtime import Counted
from test_bitwise import Result, outcome, same
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from ta_lint.core.errors import UsageError
from ta_runtime import settings
from ta_runtime.audit.audit import Audit
from ta_runtime.probes.patching import original
from ta_runtime.runs import Run, RunWriter, masking
from ta_runtime.runs.schema import KINDS
from ta_runtime.snapshot import Snapshots, environment, schedule, to_yaml
from ta_runtime.snapshot.contents import Contents
from ta_runtime.snapshot.records import outline

OF_STEPS = KINDS[2:]
Row = dict[str, Any]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.25)
        self.last = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.last(self.drop(self.act(self.norm(self.first(inputs)))))
        return found


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: int = 1,
    then: Callable[[int], object] = lambda step: None,
) -> None:
    torch.manual_seed(1)
    for step in range(steps):
        inputs, target = torch.randn(4, 4), torch.randint(2, (4,))
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), target).backward()
        optimizer.step()
        then(step)


def made() -> tuple[Net, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters())


def rows(folder: Path) -> list[Row]:
    found: list[Row] = Run(folder).records.to_pylist()
    return found


@pytest.fixture(autouse=True)
def key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the key lies by which secrets are masked: not in the home of whoever runs the tests."""
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    masking._key.cache_clear()
    yield home / "ta-lint" / "mask.key"
    masking._key.cache_clear()


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., list[Row]]:
    """The records of a training, of all steps unless the schedule says otherwise."""

    def recorded(training: Callable[..., object], *args: Any, **options: Any) -> list[Row]:
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        with Snapshots(folder, **{"schedule": "every 1", "of": OF_STEPS, **options}):
            training(*args)
        return rows(folder)

    return recorded


def names(found: Iterable[Row], kind: str, step: int | None = None) -> list[str]:
    return [row["name"] for row in found if row["kind"] == kind and step in (None, row["step"])]


def digests(found: Iterable[Row], kind: str, name: str) -> list[str]:
    return [row["digest"] for row in found if (row["kind"], row["name"]) == (kind, name)]


def texts(found: Iterable[Row], kind: str, step: int | None = None) -> dict[str, str]:
    return {row["name"]: row["text"] for row in found if row["kind"] == kind and step in (None, row["step"])}


def digest_of(tensor: Tensor) -> str:
    from ta_runtime.snapshot.contents import Contents

    row: Row = {}
    Contents().add(tensor, row)
    found: str = row["digest"]
    return found


# -- schedules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("first 3", [0, 1, 2]),
        ("every 4", [0, 4, 8]),
        ("at 2, 7", [2, 7]),
        ("at 7,2", [2, 7]),
        ("first 2, every 5, at 3", [0, 1, 3, 5]),
        ("every 4, every 6", [0, 4, 6, 8]),
        ("  First 1 ,AT 3,9 ", [0, 3, 9]),
        ("on incident", []),
        ("never", []),
        ("first 0", []),
    ],
)
def test_a_schedule_is_written_as_text(text: str, due: list[int]) -> None:
    found = schedule.resolve(text)
    assert [step for step in range(10) if found.due(step)] == due
    assert found.on_incident is ("incident" in text)


def test_a_schedule_is_joined_of_parts() -> None:
    joined = schedule.first(3) | schedule.every(1000) | schedule.at(10, 20) | schedule.on_incident()
    assert joined == schedule.resolve("first 3, every 1000, at 10, 20, on incident")
    assert schedule.never() == schedule.resolve("never")
    assert schedule.resolve(joined) is joined


@pytest.mark.parametrize(
    "text", ["", "sometimes", "every", "every -1", "first 3 4", "10", "first 3, 4", "at 1.5"]
)
def test_what_is_no_schedule_is_named_with_what_to_write(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"schedule: '.*' is not a schedule; write 'first 3', 'every 1000', 'at 10"
    ):
        schedule.resolve(text)


def test_what_is_no_schedule_is_named_by_the_key_that_it_was_given_under(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^snapshots: 'often' is not a schedule; write 'first 3'"):
        Audit(settings.resolve(record=tmp_path / "run", snapshots="often"))
    with pytest.raises(UsageError, match=r"^snapshots: 'every 0' is not a schedule; write 'never'"):
        schedule.resolve("first 3, every 0", "snapshots")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text", ["first 2", "every 4, every 6", "at 2, 7", "first 1, every 5, at 9", "never"]
)
@pytest.mark.parametrize("start", [0, 3])
def test_the_step_that_follows_is_the_next_that_is_due(text: str, start: int) -> None:
    found = schedule.resolve(text)
    due = [step for step in range(start, 40) if found.due(step, start)]
    for step in range(start, 20):
        assert found.following(step, start) == min((one for one in due if one >= step), default=math.inf)


def test_the_first_steps_of_a_run_that_goes_on_are_those_after_its_checkpoint(tmp_path: Path) -> None:
    with Snapshots(tmp_path / "given", start_step=7, schedule="first 1, every 10"):
        train(*made(), 5)
    with Snapshots(tmp_path / "counted", schedule="first 1, every 10") as snapshots:
        snapshots.count_from(7)
        train(*made(), 5)
    for name in ("given", "counted"):
        assert {row["step"] for row in rows(tmp_path / name)} == {-1, 7, 10}


@pytest.mark.parametrize(
    "wrong", [lambda: schedule.every(0), lambda: schedule.at(-1), lambda: schedule.first(True)]
)
def test_parts_of_a_schedule_are_numbers_of_steps(wrong: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="schedule: "):
        wrong()


def test_snapshots_are_taken_at_scheduled_steps(recorded: Callable[..., list[Row]]) -> None:
    found = recorded(train, *made(), 8, schedule="first 2, every 3, at 7")
    assert sorted({row["step"] for row in found} - {-1}) == [0, 1, 3, 6, 7]


def test_a_step_that_is_not_scheduled_has_no_operation_more_and_no_hook(tmp_path: Path) -> None:
    """fkat copied and hashed every gradient on every backward pass, even if no step was ever scheduled."""
    model, optimizer = made()
    call = nn.Module.__call__
    hooks: list[object] = []

    def look(step: int) -> None:
        hooks.extend(nn.modules.module._global_forward_hooks.values())
        hooks.extend(nn.modules.module._global_forward_pre_hooks.values())
        for part in model.modules():
            hooks.extend((*part._forward_hooks.values(), *part._forward_pre_hooks.values()))
        for parameter in model.parameters():
            hooks.extend((parameter._backward_hooks or {}).values())
        hooks.extend([] if nn.Module.__call__ is call else [nn.Module.__call__])

    train(model, optimizer)
    with Counted() as plain:
        train(model, optimizer, 3)
    for when in ("never", "at 99"):
        with Snapshots(tmp_path / when, schedule=when), Counted() as watched:
            train(model, optimizer, 3, look)
        assert watched.operations == plain.operations
    assert hooks == []


def instructions(step: Callable[[], object], count: int = 10) -> float:
    """Those of Python in a step, all of its frames together."""
    found = 0

    def within(frame: Any, event: str, argument: object) -> Any:
        nonlocal found
        found += event == "opcode"
        return within

    def called(frame: Any, event: str, argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return within

    before = sys.gettrace()
    original(sys.settrace)(called)  # it sees our frames too
    try:
        for _ in range(count):
            step()
    finally:
        original(sys.settrace)(before)
    return found / count


def test_a_step_that_is_not_scheduled_costs_python_130_instructions_at_most(tmp_path: Path) -> None:
    """A counter and a look at when the next is due: 116 on Python 3.11, with what torch needs to call two hooks."""

    def step() -> None:
        train(model, optimizer)

    model, optimizer = made()
    step()
    plain = instructions(step)
    with Snapshots(tmp_path / "run", schedule="first 2, every 1000") as snapshots:
        for _ in range(4):
            step()
        assert instructions(step) - plain <= 130
        assert snapshots.step == 14


def test_steps_that_are_but_counted_are_all_counted(tmp_path: Path) -> None:
    """Also where one raises, another optimizer comes, and a subclass steps within its step."""

    class Within(torch.optim.SGD):
        @torch.optim.Optimizer.profile_hook_step
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    model, _ = made()
    optimizer = Within(model.parameters())
    with Snapshots(tmp_path / "run", schedule="at 13") as snapshots:
        train(model, optimizer, 3)
        assert snapshots.step == 3
        with optimizer_that_fails(optimizer), pytest.raises(RuntimeError, match="luck"):
            train(model, optimizer)
        assert snapshots.step == 3
        train(model, optimizer, 3)
        assert snapshots.step == 6
        other = nn.Linear(4, 2)
        second = torch.optim.SGD(other.parameters())
        for number in range(4):
            train(other, second)
            train(model, optimizer)
            assert snapshots.step == 7 + number
        snapshots.take_next("asked")
        for _ in range(4):
            train(other, second)
            train(model, optimizer)
    assert {row["step"] for row in rows(tmp_path / "run")} == {-1, 11, 13}


@contextmanager
def optimizer_that_fails(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise RuntimeError("out of luck")

    hook = optimizer.register_step_pre_hook(fail)
    try:
        yield
    finally:
        hook.remove()


def test_when_it_is_over_nothing_is_left_on_torch(tmp_path: Path) -> None:
    functions = [nn.Module.__call__, torch.autograd.backward, DataLoader.__iter__, torch.amp.GradScaler.step]
    with Snapshots(tmp_path / "run"):
        assert watched(nn.Module.__call__)
    assert not any(map(watched, functions))


def test_a_scripted_module_trains_on_and_is_recorded(tmp_path: Path) -> None:
    """D6: a scripted module has another kind of dictionary for its parts, and `--snapshots` ended its training."""
    model = torch.jit.script(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Snapshots(tmp_path / "run", schedule="every 1"):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
    rows = Run(tmp_path / "run").records.to_pylist()
    assert {row["step"] for row in rows if row["kind"] == "gradient"} == {0, 1, 2}


def test_a_snapshot_that_fails_in_a_call_of_a_module_leaves_the_training_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D6: what was done around a call stood outside the fault barrier."""

    def fail(self: Snapshots, call: object) -> None:
        raise RuntimeError("of ours")

    monkeypatch.setattr(Snapshots, "_calling", fail)
    model, optimizer = made()
    with Snapshots(tmp_path / "run", schedule="every 1"):
        train(model, optimizer, 3)


def test_a_tensor_without_memory_is_recorded_as_such(tmp_path: Path) -> None:
    """D7: the memory of a subclass without storage was read at address 0, which ended the process."""

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls: type, size: tuple[int, ...]) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, size)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
            return args[0]

    emptied = torch.ones(8)
    emptied.untyped_storage().resize_(0)
    contents = Contents()
    for tensor in (Wrapper((3,)), emptied):
        row: dict[str, Any] = {}
        contents.add(tensor, row)
        assert row["algorithm"] == f"none: a `{type(tensor).__name__}` without memory of its own"


def test_a_snapshot_is_taken_now(tmp_path: Path) -> None:
    model, optimizer = made()
    with Snapshots(tmp_path / "run", model, optimizer, schedule="never") as snapshots:
        train(model, optimizer, 3)
        before = digest_of(model.last.weight)
        snapshots.take("after warm-up")
    found = rows(tmp_path / "run")
    assert {row["step"] for row in found} == {-1, 3}
    assert digests(found, "parameter", "last.weight") == [before]
    assert names(found, "gradient")
    assert names(found, "optimizer")
    assert texts(found, "configuration", 3)["snapshot.reason"] == "after warm-up"


def test_the_next_step_is_taken_on_an_incident(tmp_path: Path) -> None:
    model, optimizer = made()
    with Snapshots(tmp_path / "run", schedule="on incident") as snapshots:
        assert snapshots.schedule.on_incident
        train(model, optimizer, 5, lambda step: step == 2 and snapshots.take_next("TA102"))
    found = rows(tmp_path / "run")
    assert {row["step"] for row in found} == {-1, 4}  # the third step had ended, and the fourth begun
    assert texts(found, "configuration", 4)["snapshot.reason"] == "TA102"


# -- what is in a snapshot, and when it is read ---------------------------------------------------------------


def test_the_records_of_a_step_come_in_the_order_in_which_one_may_cause_another(
    recorded: Callable[..., list[Row]],
) -> None:
    found = recorded(train, *made(), 2)
    for step in (0, 1):
        kinds = [KINDS.index(row["kind"]) for row in found if row["step"] == step]
        assert kinds == sorted(kinds)
        for kind in KINDS:
            orders = [row["order"] for row in found if (row["step"], row["kind"]) == (step, kind)]
            assert orders == list(range(len(orders)))


def test_parameters_and_buffers_are_those_before_the_forward_pass(recorded: Callable[..., list[Row]]) -> None:
    """fkat's label was the step after the update, beside parameters of before it."""
    model, optimizer = made()
    before = {name: digest_of(tensor) for name, tensor in model.state_dict().items()}
    found = recorded(train, model, optimizer)
    seen = {row["name"]: row["digest"] for row in found if row["kind"] in ("parameter", "buffer")}
    assert seen == before
    assert seen["norm.running_mean"] != digest_of(model.norm.running_mean)


def test_activations_come_in_order_of_execution_and_before_they_are_changed_in_place(
    recorded: Callable[..., list[Row]],
) -> None:
    model, optimizer = made()
    found = recorded(train, model, optimizer)
    assert names(found, "activation") == ["first", "norm", "act", "drop", "last", "Net"]
    assert digests(found, "activation", "norm") != digests(found, "activation", "act")


def test_a_module_that_is_called_twice_has_two_records(recorded: Callable[..., list[Row]]) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.layer(self.layer(inputs))
            return found

    model = Twice()
    found = recorded(train, model, torch.optim.SGD(model.parameters()))
    assert names(found, "activation") == ["layer", "layer", "Twice"]
    assert len(set(digests(found, "activation", "layer"))) == 2


def test_outputs_of_several_tensors_are_named_by_their_paths(recorded: Callable[..., list[Row]]) -> None:
    found = recorded(test_bitwise.lstm)
    assert any(re.fullmatch(r".+:1\.0", name) for name in names(found, "activation", 0))


def test_a_batch_is_recorded_before_the_model_edits_it(recorded: Callable[..., list[Row]]) -> None:
    """fkat hashed it after the step."""
    seen = []

    class Edits(nn.Linear):
        def forward(self, inputs: Tensor) -> Tensor:
            seen.append(digest_of(inputs))
            inputs.mul_(2)
            return super().forward(inputs)

    model = Edits(4, 2)
    found = recorded(train, model, torch.optim.SGD(model.parameters()))
    assert digests(found, "batch", "0") == seen


def test_arrays_texts_and_numbers_of_a_batch_are_recorded(recorded: Callable[..., list[Row]]) -> None:
    """fkat raised on an array, and turned each number into text with a warning."""

    class Takes(nn.Linear):
        def forward(self, batch: dict[str, Any], *, scale: float) -> Tensor:  # type: ignore[override]
            return super().forward(batch["x"]) * scale

    model = Takes(4, 2)
    optimizer = torch.optim.SGD(model.parameters())

    def step() -> None:
        batch = {"x": torch.ones(2, 4), "mask": np.eye(2), "ids": ["a", "bc"], "n": 3, "tags": {"b", "a"}}
        model(batch, scale=2.0).sum().backward()
        optimizer.step()

    found = recorded(step)
    assert names(found, "batch") == ["(structure)", "0.x", "0.mask"]
    expected = (
        "({'x': Tensor, 'mask': ndarray, 'ids': ['a', 'bc'], 'n': 3, 'tags': set{'a', 'b'}}, {'scale': 2.0})"
    )
    assert texts(found, "batch")["(structure)"] == expected


def test_values_that_are_built_otherwise_are_told_apart() -> None:
    """fkat's digests of each of these pairs were equal."""
    pairs: list[tuple[Any, Any]] = [
        (["ab", "c"], ["a", "bc"]),
        (1, "1"),
        ({"0": 1}, [1]),
        ([1, [2]], [1, 2]),
        ((1, 2), [1, 2]),
        (True, 1),
        (None, "None"),
    ]
    for one, other in pairs:
        assert outline(one) != outline(other), (one, other)
    assert outline({"b", "a", "c"}) == outline({"c", "a", "b"})


def test_what_a_loader_hands_out_is_part_of_the_batch(recorded: Callable[..., list[Row]]) -> None:
    """So a label that differs is seen as such, also where the loss is a function."""
    model, optimizer = made()
    data = TensorDataset(torch.randn(8, 4), torch.arange(8) % 2)

    def loop() -> None:
        for inputs, target in DataLoader(data, batch_size=4):
            F.cross_entropy(model(inputs), target).backward()
            optimizer.step()

    found = recorded(loop)
    expected = ["loaded.(structure)", "loaded.0", "loaded.1", "loaded.(index)", "(structure)", "0"]
    assert names(found, "batch", 0) == names(found, "batch", 1) == expected
    assert [texts(found, "batch", step)["loaded.(index)"] for step in (0, 1)] == ["0", "1"]
    assert digests(found, "batch", "loaded.1") == [
        digest_of(data.tensors[1][:4]),
        digest_of(data.tensors[1][4:]),
    ]


def test_a_batch_of_a_validation_is_part_of_no_step(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    loaders = [DataLoader(TensorDataset(torch.randn(8, 4) + shift), batch_size=4) for shift in (0, 9)]

    def loop(stop_early: bool) -> None:
        training, validation = loaders
        for _ in range(2):
            model.eval()
            with torch.no_grad():
                for (inputs,) in validation:
                    model(inputs)
                    if stop_early:
                        break
            model.train()
            for (inputs,) in training:
                model(inputs).sum().backward()
                optimizer.step()

    for stop_early in (False, True):
        found = recorded(loop, stop_early)
        assert max(row["step"] for row in found) == 3
        for step in range(4):
            assert [name for name in names(found, "batch", step) if "loaded" in name] == [
                "loaded.(structure)",
                "loaded.0",
                "loaded.(index)",
            ]
        assert digests(found, "batch", "loaded.0") == digests(found, "batch", "0")


def test_a_batch_that_a_teacher_sees_first_or_that_is_drawn_ahead_is_one_of_the_training(
    recorded: Callable[..., list[Row]],
) -> None:
    (model, optimizer), (teacher, _) = made(), made()

    def loader() -> Iterator[list[Tensor]]:
        return iter(DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4))

    def with_a_teacher() -> None:
        labelled, unlabelled = loader(), loader()
        for (inputs,) in unlabelled:
            with torch.no_grad():
                wanted = teacher(inputs)
            (others,) = next(labelled)
            (model(torch.cat((inputs, others)))[:4] - wanted).sum().backward()
            optimizer.step()

    def ahead() -> None:
        batches = loader()
        (following,) = next(batches)
        for _ in range(2):
            (inputs,), following = (following,), next(batches, None)
            model(inputs[0] if isinstance(inputs, list) else inputs).sum().backward()  # type: ignore[unreachable]
            optimizer.step()

    assert names(recorded(with_a_teacher), "batch").count("loaded.0") == 4
    assert names(recorded(ahead), "batch", 0).count("loaded.0") == 2


def test_a_step_of_which_nothing_ran_is_not_recorded(recorded: Callable[..., list[Row]]) -> None:
    """A loop asks its loader once more when the last step is over, or leaves with a batch in its hands."""
    model, optimizer = made()
    data = TensorDataset(torch.randn(12, 4))

    def loop(steps: int) -> None:
        for step, (inputs,) in enumerate(DataLoader(data, batch_size=4)):
            if step == steps:
                break
            model(inputs).sum().backward()
            optimizer.step()

    for steps in (2, 3):
        assert {row["step"] for row in recorded(loop, steps)} - {-1} == set(range(steps))


def test_a_step_whose_batch_cannot_be_drawn_is_recorded_as_far_as_it_came(tmp_path: Path) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("out of luck")

    loader: DataLoader[Any] = DataLoader([1], collate_fn=fails)
    with pytest.raises(RuntimeError, match="luck"), Snapshots(tmp_path / "run", of=OF_STEPS):
        next(iter(loader))
    assert names(rows(tmp_path / "run"), "rng", 0)


def test_the_targets_of_a_criterion_are_part_of_the_batch(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    target = torch.tensor([0, 1, 1, 0])

    def step() -> None:
        nn.CrossEntropyLoss()(model(torch.ones(4, 4)), target).backward()
        optimizer.step()

    assert digests(recorded(step), "batch", "CrossEntropyLoss.1") == [digest_of(target)]


def test_gradients_are_those_that_the_optimizer_uses(recorded: Callable[..., list[Row]]) -> None:
    """fkat saw them scaled, not clipped, and of the last micro-batch alone."""
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    used = []

    def step() -> None:
        for _ in range(2):
            scaler.scale(model(torch.randn(4, 4)).sum()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        used.append(digest_of(model.last.weight.grad))
        scaler.step(optimizer)
        scaler.update()

    found = recorded(step)
    assert digests(found, "gradient", "last.weight") == used


def test_each_micro_batch_has_its_records(recorded: Callable[..., list[Row]]) -> None:
    found = recorded(test_bitwise.accumulation)
    calls = names(found, "activation", 0)
    first = [row for row in found if row["step"] == 0]
    micro = len([row for row in first if row["kind"] == "loss"])
    assert micro > 1
    assert calls.count(calls[0]) == micro
    assert names(first, "batch").count("0") == micro
    parameters = names(first, "parameter")
    assert len(parameters) == len(set(parameters))


def test_a_loss_is_recorded_without_the_factor_of_a_scaler(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    losses = []

    def step() -> None:
        loss = model(torch.ones(4, 4)).square().mean()
        losses.append(loss.detach())
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)

    found = recorded(step)
    assert digests(found, "loss", "loss") == [digest_of(losses[0])]


def test_a_step_that_a_scaler_skips_is_a_step(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)

    def loop() -> None:
        for step in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 4)).sum() * (1e30 if step == 1 else 1e-20)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    found = recorded(loop)
    assert [step for step in range(4) if names(found, "loss", step)] == [0, 1, 2]
    assert not names(found, "gradient", 1)


def test_the_state_of_an_optimizer_is_that_before_the_update(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    states = []
    found = recorded(
        train,
        model,
        optimizer,
        2,
        lambda step: states.append(digest_of(optimizer.state[model.last.weight]["exp_avg"])),
    )
    assert digests(found, "optimizer", "last.weight.exp_avg") == states[:1]


def test_at_the_first_step_parameters_have_the_names_of_the_model_also_where_an_optimizer_runs_it(
    tmp_path: Path,
) -> None:
    """D4: `step(closure)` is called before any model is, and the first step had `LBFGS.group0.0` and each tensor twice."""
    for number, (of, given) in enumerate(
        (of, given)
        for of in (("parameter",), ("parameter", "gradient", "optimizer"))
        for given in (False, True)
    ):
        model, _ = made()
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

        def closure() -> Tensor:
            optimizer.zero_grad()  # noqa: B023
            loss: Tensor = model(torch.ones(4, 4)).square().mean()  # noqa: B023
            loss.backward()
            return loss

        folder = tmp_path / str(number)
        with Snapshots(folder, model if given else None, schedule="first 2", of=of):
            for _ in range(2):
                optimizer.step(closure)
        found = rows(folder)
        expected = [name for name, _ in model.named_parameters()]
        for step in (0, 1):
            assert names(found, "parameter", step) == expected
        assert all(row["digest"] for row in found if row["kind"] == "parameter")
        assert not any("group" in row["name"] for row in found)


def test_hyperparameters_of_each_group_are_recorded_at_each_step(recorded: Callable[..., list[Row]]) -> None:
    model, _ = made()
    groups: list[Any] = [{"params": model.first.parameters()}, {"params": model.last.parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    halve = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    found = recorded(train, model, optimizer, 2, lambda step: halve.step())
    assert texts(found, "configuration", 0)["SGD.group1.lr"] == "0.5"
    assert texts(found, "configuration", 1)["SGD.group1.lr"] == "0.25"
    assert texts(found, "configuration", 0)["SGD.group0.momentum"] == "0.9"
    assert texts(found, "configuration", 0)["optimizer"] == "SGD"


@pytest.mark.parametrize("of", [["parameter"], ["gradient"], ["buffer", "optimizer"], ["batch"]])
def test_kinds_are_recorded_alone(recorded: Callable[..., list[Row]], of: list[str]) -> None:
    """fkat's `params` without `grads` always failed on an assertion."""
    assert {row["kind"] for row in recorded(train, *made(), 2, of=of)} == set(of)


def test_frozen_and_unused_parameters_have_no_gradient_and_say_so(recorded: Callable[..., list[Row]]) -> None:
    """fkat failed on them."""
    model, _ = made()
    model.first.weight.requires_grad_(False)
    model.unused = nn.Linear(1, 1, bias=False)
    found = recorded(train, model, torch.optim.SGD(model.parameters()))
    without = texts(found, "gradient")
    assert without["first.weight"] == "none: frozen"
    assert without["unused.weight"] == "none"
    assert without["last.weight"] is None
    assert "unused.weight" in names(found, "parameter")  # type: ignore[unreachable]


def test_tied_parameters_are_recorded_once_under_all_their_names(recorded: Callable[..., list[Row]]) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.out = nn.Linear(4, 4), nn.Linear(4, 4)
            self.out.weight = self.into.weight

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.out(self.into(inputs))
            return found

    model = Tied()
    found = recorded(train, model, torch.optim.SGD(model.parameters()))
    assert texts(found, "parameter")["out.weight"] == "the same tensor as into.weight"
    assert len(digests(found, "parameter", "into.weight")) == 1
    assert names(found, "gradient").count("into.weight") == 1


def test_models_that_train_at_once_have_names_of_their_own(recorded: Callable[..., list[Row]]) -> None:
    """fkat's record of one optimizer overwrote that of the other."""
    found = [row for row in recorded(test_bitwise.gan) if row["step"] == 2]
    parameters = names(found, "parameter")
    assert len(parameters) == len(set(parameters))
    assert len(names(found, "gradient")) > 0
    assert len([row for row in found if row["name"] == "(class)"]) == 2


def test_evaluation_is_not_recorded(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()

    def loop() -> None:
        with torch.no_grad():
            model(torch.zeros(3, 4))
        train(model, optimizer)

    found = recorded(loop)
    assert len(digests(found, "activation", "first")) == 1


def test_what_is_computed_again_in_the_backward_pass_is_recorded_once(
    recorded: Callable[..., list[Row]],
) -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(Net):
        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.last(checkpoint(self.first, inputs, use_reentrant=False))
            return found

    model = Checkpointed()
    found = recorded(train, model, torch.optim.SGD(model.parameters()))
    assert names(found, "activation") == ["first", "last", "Checkpointed"]


def test_an_optimizer_that_runs_a_closure_has_the_gradients_of_each_call(
    recorded: Callable[..., list[Row]],
) -> None:
    """The first are those at the parameters that are recorded, whatever the optimizer does with them afterwards."""
    model = nn.Linear(2, 1, bias=False)
    inputs = torch.randn(8, 2)
    expected = []

    class Spent(torch.optim.LBFGS):
        def step(self, closure: Any) -> Any:  # type: ignore[override]
            loss = super().step(closure)
            self.zero_grad()
            return loss

    optimizer = Spent(model.parameters(), lr=0.1, max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (model(inputs) - 1).square().mean()
        loss.backward()
        model.weight.grad.mul_(0.5)  # as clipping does
        expected.append(digest_of(model.weight.grad.clone()))
        return loss

    found = recorded(lambda: optimizer.step(closure))
    assert len(expected) > 1
    assert digests(found, "gradient", "weight") == expected
    assert len(names(found, "loss")) == len(expected)


def test_an_optimizer_may_be_given_its_closure_by_name(recorded: Callable[..., list[Row]]) -> None:
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters())

    def closure() -> float:
        model(torch.ones(1, 2)).sum().backward()
        return 0.5

    found = recorded(lambda: [optimizer.step(closure=closure) for _ in range(2)])
    assert names(found, "gradient", 0) == names(found, "gradient", 1) == ["weight"]


def test_only_the_model_and_the_optimizer_that_are_given_are_recorded(tmp_path: Path) -> None:
    model, optimizer = made()
    other = nn.Linear(4, 2)
    with Snapshots(tmp_path / "run", model, optimizer, schedule="every 1", of=OF_STEPS):
        train(other, torch.optim.SGD(other.parameters()), 3)
        train(model, optimizer, 2)
    found = rows(tmp_path / "run")
    assert {row["step"] for row in found if row["kind"] == "gradient"} == {0, 1}
    assert set(names(found, "parameter")) == {name for name, _ in model.named_parameters()}
    assert "Linear" not in names(found, "activation")


def test_random_states_are_recorded_where_a_step_begins(recorded: Callable[..., list[Row]]) -> None:
    """fkat failed on a machine without CUDA."""
    found = recorded(train, *made(), 2)
    torch.manual_seed(1)
    torch.randn(4, 4), torch.randint(2, (4,))
    assert names(found, "rng", 0)[:3] == ["python", "numpy", "torch"]
    [first, second] = digests(found, "rng", "torch")
    assert first != second

    from ta_runtime.measure.digests import copied, of_bytes

    assert first == of_bytes(copied(torch.get_rng_state()))[0]


def test_layers_with_their_settings_are_recorded_once(recorded: Callable[..., list[Row]]) -> None:
    found = recorded(train, *made(), 2)
    assert texts(found, "configuration", 0)["module.drop"] == "Dropout(p=0.25, inplace=False)"
    assert "module.drop" not in texts(found, "configuration", 1)


def test_layers_that_are_in_another_mode_than_their_model_are_named(
    recorded: Callable[..., list[Row]],
) -> None:
    model, optimizer = made()
    model.norm.eval()
    found = texts(recorded(train, model, optimizer), "configuration")
    assert found["module.Net.training"] == "True, not in norm"


def test_how_a_loader_makes_batches_is_recorded(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    data = TensorDataset(torch.randn(9, 4))

    def loop() -> None:
        for (inputs,) in DataLoader(data, batch_size=3, shuffle=True, drop_last=True):
            model(inputs).sum().backward()
            optimizer.step()

    found = texts(recorded(loop, schedule="at 1"), "configuration", 1)  # the loader is gone by then
    expected = {"batch_size": "3", "num_workers": "0", "shuffle": "True", "drop_last": "True", "length": "9"}
    expected |= {"sampler": "RandomSampler", "dataset": "TensorDataset"}
    assert {name: found[f"DataLoader.{name}"] for name in expected} == expected


def test_flags_that_numbers_depend_on_are_recorded_at_each_step(recorded: Callable[..., list[Row]]) -> None:
    def loop() -> None:
        model, optimizer = made()
        train(model, optimizer)
        torch.use_deterministic_algorithms(True)
        try:
            train(model, optimizer)
        finally:
            torch.use_deterministic_algorithms(False)

    found = recorded(loop)
    assert [texts(found, "configuration", step)["deterministic_algorithms"] for step in (0, 1)] == [
        "False",
        "True",
    ]


def test_statistics_stand_beside_the_digests(recorded: Callable[..., list[Row]]) -> None:
    model, optimizer = made()
    mean = model.last.weight.double().mean().item()
    found = recorded(train, model, optimizer, statistics=["mean", "infs"])
    [row] = [row for row in found if (row["kind"], row["name"]) == ("parameter", "last.weight")]
    assert row["mean"] == pytest.approx(mean)
    assert (row["pos_infs"], row["neg_infs"], row["std"]) == (0, 0, None)


def test_records_are_read_by_duckdb(tmp_path: Path) -> None:
    with Snapshots(tmp_path / "run", schedule="first 2"):
        train(*made(), 2)
    query = (
        f"select count(distinct digest) from '{tmp_path}/run/records/*.parquet' where name = 'last.weight'"
    )
    assert duckdb.sql(query + " and kind = 'parameter'").fetchall() == [(2,)]


# -- what the training notices --------------------------------------------------------------------------------

LOOPS = ["mlp", "cnn", "gpt", "lstm", "gan", "accumulation", "amp", "lbfgs"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_run_is_bitwise_the_same_with_every_step_recorded(
    tmp_path: Path, loop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Callable[[], Result] = getattr(test_bitwise, loop)
    plain = outcome(run)
    statistics = "all" if loop == "mlp" else ()
    with Snapshots(tmp_path / "run", schedule="every 1", statistics=statistics):
        watched = outcome(run)
    assert same(plain, watched)
    assert names(rows(tmp_path / "run"), "gradient")
    assert capsys.readouterr().err == ""


def test_two_runs_of_one_seed_have_equal_records(recorded: Callable[..., list[Row]]) -> None:
    def seeded() -> None:
        random.seed(0)
        np.random.seed(0)
        train(*made(), 3)

    assert recorded(seeded) == recorded(seeded)


def test_a_model_that_cannot_be_described_is_recorded_nevertheless(
    recorded: Callable[..., list[Row]], capsys: pytest.CaptureFixture[str]
) -> None:
    class Rude(nn.Linear):
        def extra_repr(self) -> str:
            raise RuntimeError("no")

    model = Rude(4, 2)
    found = recorded(train, model, torch.optim.SGD(model.parameters()))
    assert texts(found, "configuration")["module.Rude"] == "Rude"
    assert names(found, "parameter") == ["weight", "bias"]
    assert capsys.readouterr().err == ""


def test_what_goes_wrong_three_times_ends_the_snapshots_and_not_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(nn.Linear):
        def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Module]]:
            raise RuntimeError("no modules today")

    model = Broken(4, 2)
    optimizer = torch.optim.SGD([model.weight])
    call = nn.Module.__call__
    with Snapshots(tmp_path / "run", schedule="every 1"):
        train(model, optimizer, 8)
        assert nn.Module.__call__ is call
    said = capsys.readouterr().err
    assert said.count("no modules today") == 3
    assert "no more snapshots are taken" in said


def test_a_run_that_raises_leaves_what_led_to_it(tmp_path: Path) -> None:
    class Fails(Net):
        def forward(self, inputs: Tensor) -> Tensor:
            self.first(inputs)
            raise RuntimeError("out of luck")

    model = Fails()
    with pytest.raises(RuntimeError, match="luck"), Snapshots(tmp_path / "run"):
        train(model, torch.optim.SGD(model.parameters()))
    found = rows(tmp_path / "run")
    assert names(found, "activation") == ["first"]
    assert names(found, "batch") == ["(structure)", "0"]


KILLED = """\
import os, signal, torch
from ta_runtime.snapshot import Snapshots

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters())
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)


def after_steps():
    Snapshots("steps").start()
    for step in range(5):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        if step == 2:
            kill()


def in_the_first_forward_pass():
    Snapshots("forward").start()
    model.register_forward_pre_hook(kill)
    model(torch.ones(1, 2))


def in_the_first_step():
    Snapshots("step", schedule="never").start()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.register_step_pre_hook(kill)
    optimizer.step()


def of_a_known_rank():
    os.environ["RANK"] = "0"
    Snapshots("rank", schedule="never").start()
    kill()


for killed in (after_steps, in_the_first_forward_pass, in_the_first_step, of_a_known_rank):
    if not os.fork():
        killed()
    assert os.waitstatus_to_exitcode(os.wait()[1]) == -9
"""


def test_a_killed_run_leaves_what_was_before(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(KILLED)
    ran = commands.warm(tmp_path, "train.py", RANK="")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {row["step"] for row in rows(tmp_path / "steps")} == {-1, 0, 1, 2}
    for name in ("forward", "step", "rank"):
        found = rows(tmp_path / name)
        assert {row["step"] for row in found} == {-1}
        assert {"environment", "package"} <= {row["kind"] for row in found}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("form", ["columns", "yaml"])
def test_a_process_that_is_forked_off_writes_nothing(tmp_path: Path, form: Any) -> None:
    with Snapshots(tmp_path / "run", schedule="never", form=form) as snapshots:
        before = sorted(tmp_path.rglob("*"))
        if not (child := os.fork()):
            snapshots.take("child")
            snapshots.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_of_a_compiled_model_all_but_layers_is_recorded(recorded: Callable[..., list[Row]]) -> None:
    model = Net()
    compiled = torch.compile(model, backend="eager")
    found = recorded(train, compiled, torch.optim.Adam(model.parameters()), 2)
    assert "not taken" in texts(found, "configuration", 0)["snapshot.activations"]
    assert names(found, "activation") == ["Net", "Net"]
    assert digests(found, "buffer", "norm.num_batches_tracked")[1] == digest_of(torch.tensor(1))
    assert names(found, "batch", 1) == ["(structure)", "0"]
    for kind in ("parameter", "gradient"):
        assert set(names(found, kind, 1)) == {name for name, _ in model.named_parameters()}
    assert names(found, "optimizer", 1)
    assert names(found, "loss", 1) == ["loss"]


def test_a_model_that_is_compiled_later_is_not_compiled_with_what_is_wrapped(
    recorded: Callable[..., list[Row]], capsys: pytest.CaptureFixture[str]
) -> None:
    def loop() -> None:
        model, optimizer = made()
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        train(compiled, optimizer, 4)

    compiled = torch._dynamo.utils.counters["stats"]
    compiled.clear()
    found = recorded(loop, schedule="first 2")
    assert compiled["unique_graphs"] == 1
    assert "not taken" in texts(found, "configuration", 0)["snapshot.activations"]
    assert names(found, "gradient", 1)
    assert capsys.readouterr().err == ""


# -- arguments ------------------------------------------------------------------------------------------------


def test_a_folder_with_a_run_is_left_alone(tmp_path: Path) -> None:
    with Snapshots(tmp_path / "run"):
        train(*made())
    with Snapshots(tmp_path / "run"):
        train(*made())
    assert Run(tmp_path / "run-2").records.num_rows == Run(tmp_path / "run").records.num_rows


def test_records_go_into_a_writer_that_is_given(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    with Snapshots(writer):
        train(*made())
    assert names(rows(tmp_path / "run"), "parameter")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "daily"}, "schedule: 'daily' is not a schedule"),
        ({"of": ["weights"]}, "of: 'weights' is none of environment, package"),
        ({"statistics": "avg"}, "statistics: 'avg' is none of"),
        ({"form": "json"}, "form: 'json' is neither 'columns' nor 'yaml'"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Snapshots(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


# -- the environment ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", "x"),
        ("HF_TOKEN", "short"),
        ("db_password", "hunter2"),
        ("AWS_SECRET_ACCESS_KEY", "y"),
        ("MY_SETTING", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("OTHER", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc"),
        ("SSH", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("BLOB", "0123456789abcdef0123456789abcdef"),
    ],
)
def test_values_that_look_like_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch, key: Path, name: str, value: str
) -> None:
    """fkat wrote them into its file."""
    monkeypatch.setenv(name, value)
    found = dict(environment.variables())[name]
    assert re.fullmatch(r"<masked [0-9a-f]{16}, key [0-9a-f]{8}>", found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "1"),
        ("PATH", "/usr/local/bin:/usr/bin:/home/me/.local/bin/x1"),
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
        ("HTTP_ENDPOINT", "https://example.com:8080/path"),
        ("LD_LIBRARY_PATH", "/usr/lib/x86_64-linux-gnu"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
    ],
)
def test_other_values_are_recorded_as_they_are(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert dict(environment.variables())[name] == value


def test_masked_values_are_compared_by_a_key_that_stays_with_the_user(
    monkeypatch: pytest.MonkeyPatch, key: Path, tmp_path: Path
) -> None:
    same_twice = [masking.masked("hunter2") for _ in range(2)]
    assert same_twice[0] == same_twice[1] != masking.masked("hunter3")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    masking._key.cache_clear()
    assert masking.masked("hunter2") == same_twice[0]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    masking._key.cache_clear()
    other = masking.masked("hunter2")
    assert other.partition("key")[2] != same_twice[0].partition("key")[2]


def test_without_a_place_for_the_key_values_are_masked_by_one_of_this_process(
    monkeypatch: pytest.MonkeyPatch, key: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert masking.masked("x").startswith("<masked ")


def test_what_is_masked_can_be_chosen(monkeypatch: pytest.MonkeyPatch, key: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("PROJECT", "hush")
    monkeypatch.setenv("MY_TOKEN", "open")
    assert dict(environment.variables())["PROJECT"] == "hush"
    for mask in (("PROJ*",), "PROJECT"):
        with Snapshots(tmp_path / str(mask), mask=mask):
            train(*made())
        found = texts(rows(tmp_path / str(mask)), "environment")
        assert found["PROJECT"].startswith("<masked")
        assert found["MY_TOKEN"].startswith("<masked")
    with Snapshots(tmp_path / "open", mask=False):
        train(*made())
    assert texts(rows(tmp_path / "open"), "environment")["MY_TOKEN"] == "open"


def test_the_environment_and_packages_are_recorded_before_the_first_step(tmp_path: Path) -> None:
    with Snapshots(tmp_path / "run", schedule="never"):
        pass
    found = rows(tmp_path / "run")
    assert (
        texts(found, "package", -1)["torch"] == torch.__version__.partition("+")[0]
        or "+" in torch.__version__
    )
    assert "PATH" in texts(found, "environment", -1)
    assert texts(found, "configuration", -1)["torch"] == torch.__version__


def test_a_variable_that_the_run_sets_is_recorded_at_its_step(
    monkeypatch: pytest.MonkeyPatch, recorded: Callable[..., list[Row]]
) -> None:
    monkeypatch.setenv("GONE", "1")

    def loop() -> None:
        model, optimizer = made()
        train(model, optimizer)
        monkeypatch.setenv("NCCL_ALGO", "Ring")
        monkeypatch.delenv("GONE")
        train(model, optimizer, 2)

    found = recorded(loop, of=["environment"])
    assert texts(found, "environment", 1) == {"GONE": "(not set)", "NCCL_ALGO": "Ring"}
    assert texts(found, "environment", 2) == {}


# -- YAML -----------------------------------------------------------------------------------------------------


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_files_of_fkat_lie_where_it_puts_them(tmp_path: Path) -> None:
    """Its own option for a folder dropped stage and step, so that each file overwrote the one before."""
    with Snapshots(tmp_path / "run", schedule="first 2", statistics="all", form="yaml"):
        train(*made(), 3)
    folder = tmp_path / "run" / "introspection"
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))
    steps = ["fit/step=0/rank0.yaml", "fit/step=1/rank0.yaml"]
    assert found == ["configuration.yaml", "env_vars.yaml", *steps, "pip_freeze.yaml"]
    step = content(folder / steps[1])
    assert set(step["parameters"]["last.weight"]) == {"data", "grad"}
    assert {"__all_data__", "__all_grads__"} <= set(step["parameters"])
    assert set(step["rngs"]) >= {"torch", "python", "numpy"}
    assert set(step["batch"]) == {"__batch__", "__all_batch__"}
    [optimizer] = step["optimizers"]
    assert optimizer["__type__"] == "Adam"
    assert optimizer["param_groups"][0]["lr"] == optimizer["defaults"]["lr"] == 0.001
    assert optimizer["param_groups"][0]["betas"] == [0.9, 0.999]
    assert "last.weight.exp_avg" in optimizer["state"]


def test_every_file_of_yaml_can_be_read_without_classes_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: `torch.__version__` is a subclass of `str`, which YAML wrote as a Python object; a variable may hold any byte."""
    monkeypatch.setenv("BYTES", "caf\udce9")
    model, _ = made()

    class Kind(str):
        pass

    class Rate(float):
        pass

    groups = [{"params": model.parameters(), "kind": Kind("slow"), "path": Path("a"), "dtype": torch.float16,
               "rate": np.float32(0.5), "size": torch.Size([2]), "phase": torch.tensor(1.5), "top": math.inf}]  # fmt: skip
    optimizer = torch.optim.SGD(groups, lr=Rate(0.1), momentum=0.9)
    with Snapshots(tmp_path / "run", schedule="first 2", form="yaml"):
        train(model, optimizer, 2)
    with Snapshots(tmp_path / "columns", schedule="first 2"):
        train(model, optimizer, 2)
    to_yaml(tmp_path / "columns", tmp_path / "out")
    found = {path: content(path) for path in tmp_path.rglob("*.yaml")}
    assert len(found) == 10
    for path, step in found.items():
        if path.name == "configuration.yaml":
            assert step["torch"] == str(torch.__version__)
        if path.name == "rank0.yaml":
            [group] = step["optimizers"][0]["param_groups"]
            assert group["kind"] == "slow"
            assert (group["path"], group["dtype"], group["size"]) == ("a", "float16", [2])
            assert (group["rate"], group["phase"], group["lr"], group["top"]) == (0.5, 1.5, 0.1, math.inf)


def test_a_batch_of_yaml_is_nested_as_it_was_and_has_its_number(tmp_path: Path) -> None:
    """D12: it was flattened to `loaded.x`."""
    model, optimizer = made()
    data = [{"x": torch.randn(4), "y": (torch.tensor(1), torch.tensor(0)), "id": "a"} for _ in range(8)]
    with Snapshots(tmp_path / "run", schedule="at 1", form="yaml"):
        for batch in DataLoader(data, batch_size=4):
            nn.CrossEntropyLoss()(model(batch["x"]), batch["y"][0]).backward()
            optimizer.step()
    batch = content(tmp_path / "run/introspection/fit/step=1/rank0.yaml")["batch"]
    assert batch["__batch_idx__"] == 1
    inner = batch["__batch__"]
    assert inner.keys() == {"x", "y", "__structure__"}
    assert inner["x"].startswith("4×4|fp32|")
    assert [each[:6] for each in inner["y"]] == ["4|i64|", "4|i64|"]
    assert "'id': ['a', 'a', 'a', 'a']" in inner["__structure__"]
    assert batch["arguments"] == [inner["x"]]


def test_a_schedule_may_be_a_function_of_the_step(tmp_path: Path) -> None:
    """D12. It is asked once about each step."""
    asked: list[int] = []

    def prime(step: int) -> bool:
        asked.append(step)
        return step in (2, 3, 5)

    with Snapshots(tmp_path / "run", schedule=prime):
        train(*made(), 6)
    assert {row["step"] for row in rows(tmp_path / "run")} == {-1, 2, 3, 5}
    assert asked == list(range(7))
    joined = schedule.when(prime) | schedule.at(9) | schedule.when(lambda step: step == 7)
    assert [step for step in range(10) if joined.due(step)] == [2, 3, 5, 7, 9]


def test_a_tensor_is_one_line_in_the_order_of_fkat(tmp_path: Path) -> None:
    with Snapshots(tmp_path / "run", schedule="first 1", statistics="all", form="yaml"):
        train(*made())
    step = content(tmp_path / "run/introspection/fit/step=0/rank0.yaml")
    line = step["parameters"]["last.weight"]["data"]
    number = r"-?[\d.e+-]+"
    signs = ["m̃", "μ", "μ⁺", "σ", "σ²", "s²", "γ₁", "γ₂", "Mo", "↤", "↦"]
    fields = [r"2×8", "fp32", r"0∞̟", r"0∞̠", r"0⚠", r"0⌀", *(number + sign for sign in signs), r"[0-9a-f]{32}"]
    assert re.fullmatch(r"\|".join(fields), line), line


def test_the_digest_of_all_buffers_is_of_all_of_them(tmp_path: Path) -> None:
    """fkat's was that of the last one."""
    sums = set()
    for number in range(2):
        model, optimizer = made()
        model.norm.running_mean += number
        with Snapshots(tmp_path / str(number), schedule="first 1", of=["buffer"], form="yaml"):
            train(model, optimizer)
        sums.add(
            content(tmp_path / f"{number}/introspection/fit/step=0/rank0.yaml")["buffers"]["__all_buffers__"]
        )
    assert len(sums) == 2


def test_columns_become_yaml_afterwards(tmp_path: Path) -> None:
    for form in ("columns", "yaml"):
        random.seed(0)
        np.random.seed(0)
        with Snapshots(tmp_path / form, schedule="first 2", statistics="all", form=form):
            train(*made(), 2)
    folder = to_yaml(tmp_path / "columns", tmp_path / "out")
    assert folder == tmp_path / "out" / "introspection"
    for name in ("fit/step=1/rank0.yaml", "pip_freeze.yaml"):
        assert content(folder / name) == content(tmp_path / "yaml" / "introspection" / name)


def test_files_that_are_there_are_not_overwritten(tmp_path: Path) -> None:
    with Snapshots(tmp_path / "run", schedule="first 1", form="yaml"):
        train(*made())
    with pytest.raises(UsageError, match="holds snapshots already"):
        Snapshots(tmp_path / "run", form="yaml")


# -- ranks ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_ranks_under_ddp_record_reduced_gradients(ranks: Path) -> None:
    """fkat saw those before the reduction, which differ."""
    found = [[row for row in rows(ranks / "healthy") if row["rank"] == rank] for rank in (0, 1)]
    for step in (0, 1):
        of_step = [[row for row in of_rank if row["step"] == step] for of_rank in found]
        gradients = [digests(of_rank, "gradient", "2.weight") for of_rank in of_step]
        assert gradients[0] == gradients[1]
        batches = [digests(of_rank, "batch", "0") for of_rank in of_step]
        assert batches[0] != batches[1]
    layers = ("0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias")
    assert set(names(found[0], "parameter")) == set(layers)
    assert "2" in names(found[0], "activation")


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_ranks_may_be_told_apart_after_the_start(ranks: Path) -> None:
    found = rows(ranks / "early")
    assert {row["rank"] for row in found if row["kind"] == "package"} == {0, 1}
    assert {row["rank"] for row in found if row["kind"] == "gradient"} == {0, 1}


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_a_rank_that_joins_its_group_has_written_its_environment(ranks: Path) -> None:
    """As a job that is killed soon after leaves it."""
    for rank in (0, 1):
        found = [row for row in rows(ranks / f"joined{rank}") if row["rank"] == rank]
        assert {row["step"] for row in found} == {-1}
        assert {"environment", "package"} <= {row["kind"] for row in found}


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_ranks_under_fsdp2_record_their_shards_and_say_so(ranks: Path) -> None:
    """fkat raised on a distributed tensor, and never saw its gradient."""
    for rank in (0, 1):
        found = [row for row in rows(ranks / "sharded") if row["rank"] == rank]
        name = f"0.weight [{rank + 1}/2 of dim 0]"
        for kind in ("parameter", "gradient"):
            row = next(row for row in found if (row["kind"], row["name"]) == (kind, name))
            assert row["shape"] == [4, 6]
            assert row["digest"]


# -- the page -------------------------------------------------------------------------------------------------


def test_the_page_on_snapshots_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "snapshot.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(block, scope)  # noqa: S102 - the code of a page is what is tested
    assert {row["step"] for row in rows(tmp_path / "runs" / "b")} == {-1, 0}
