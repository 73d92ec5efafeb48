"""Whatever watches a training gives torch back: alone, one after the other, nested, crossed, and after errors.

And each finds in a second life what it found in the first, and beside the others what it finds alone.
"""

import copy
import gc
import io
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import accelerate
import lightning
import photograph
import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module
from torch.optim import optimizer
from torch.utils.data import DataLoader, TensorDataset

from ta_lint.core.finding import Finding
from ta_runtime import api
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.session import Session
from ta_runtime.integrations import accelerate as of_accelerate
from ta_runtime.integrations import lightning as of_lightning
from ta_runtime.integrations import transformers as of_transformers
from ta_runtime.monitor import ModuleMonitor
from ta_runtime.monitor.refined_coordinate_check import RefinedCoordinateCheck
from ta_runtime.observers.optimizers import Optimizers
from ta_runtime.probes import hub
from ta_runtime.runs import Run
from ta_runtime.settings import resolve
from ta_runtime.snapshot import Snapshots
from ta_runtime.trace.event import Event
from ta_runtime.trace.tracer import Tracer

pytestmark = pytest.mark.filterwarnings("ignore")


class Attention(nn.Module):
    """Drops weights in every mode: TA417."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.project(x)[None]
        return F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.2)[0]


class Training:
    """A loop of all that is wrapped: a loader, a scaler, a schedule, checkpoints, an evaluation. It clips what is scaled."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        random.seed(0)
        self.model = nn.Sequential(Attention(), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Linear(6, 3))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.scaler = torch.amp.GradScaler("cpu")
        data = TensorDataset(torch.randn(16, 6), torch.randint(3, (16,)))
        self.loader = DataLoader(data, batch_size=8, shuffle=True)
        self.begins: list[Callable[[int], object]] = []
        self.ends: list[Callable[[], object]] = []
        self.index = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            for inputs, targets in self.loader:
                self._step(inputs, targets)
            self.schedule.step()
            saved = io.BytesIO()
            torch.save(self.model.state_dict(), saved)
            saved.seek(0)
            self.model.load_state_dict(torch.load(saved))
            self.model.eval()
            with torch.no_grad():
                float(self.model(torch.randn(8, 6)).softmax(-1).log().mean())
            self.model.train()

    def _step(self, inputs: Tensor, targets: Tensor) -> None:
        for begins in list(self.begins):
            begins(self.index)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(inputs), targets)
        self.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        for ends in list(self.ends):
            ends()
        self.index += 1


Found = Callable[[], set[str]]
Part = Callable[[Training, Path], AbstractContextManager[Found]]


@contextmanager
def audit(training: Training, folder: Path, **options: Any) -> Iterator[Found]:
    settings = resolve(every_n_steps=1, rules="ALL", output=None, live=False, **options)
    watching = Audit(settings)
    watching.start()
    try:
        yield lambda: {f"{each.rule} {each.site.line}" for each in watching.findings}
    finally:
        watching.stop()


@contextmanager
def invariants(training: Training, folder: Path) -> Iterator[Found]:
    empty = folder / "invariants.json"
    empty.write_text(json.dumps({"format": "ta-runtime invariants", "version": 1, "invariants": []}))
    settings = resolve(every_n_steps=0, rules=["TA510"], output=None, live=False, invariants=empty)
    watching = Audit(settings)
    watching.start()
    try:
        yield lambda: {f"{each.evidence['invariant']} {each.site.line}" for each in watching.findings}
    finally:
        watching.stop()


@contextmanager
def monitor(training: Training, folder: Path) -> Iterator[Found]:
    watching = ModuleMonitor(monitor_step_fn=None)
    watching.add_activation_metric("norm", lambda output: output.norm())
    watching.add_activation_difference_metric("norm", lambda output, other: (output - other).norm())
    watching.set_module(training.model)
    watching.set_reference_module(copy.deepcopy(training.model))
    check = RefinedCoordinateCheck(watching)
    stop = watching.watch_attention()
    begins, ends = watching.begin_step, watching.end_step
    training.begins.append(begins)
    training.ends.append(ends)
    try:
        yield lambda: {key for numbers in watching.get_all_metrics().values() for key in numbers}
    finally:
        del check
        training.begins.remove(begins)
        training.ends.remove(ends)
        stop()


@contextmanager
def snapshots(training: Training, folder: Path) -> Iterator[Found]:
    number = len(list(folder.iterdir()))
    with Snapshots(folder / f"snapshots{number}", schedule="every 1"):
        yield lambda: {
            f"{row['kind']} {row['name']}"
            for row in Run(str(folder / f"snapshots{number}")).records.to_pylist()
            if row["kind"] != "environment"
        }


@contextmanager
def trace(training: Training, folder: Path) -> Iterator[Found]:
    events: list[Event] = []
    with Tracer(events.append, level="ops"):
        yield lambda: {f"{event.kind} {event.name} {event.subject}" for event in events}


PARTS: dict[str, Part] = {each.__name__: each for each in (audit, invariants, monitor, snapshots, trace)}
KINDS = (Audit, Session, ModuleMonitor, Snapshots, Tracer)


@pytest.fixture(scope="module", autouse=True)
def _all_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What comes with the first use of anything, such as loggers and caches, is there."""
    folder = tmp_path_factory.mktemp("first")
    for part in PARTS.values():
        training = Training()
        with part(training, folder) as found:
            training.steps(1)
        found()


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """The process is as after the same training that nobody watched, and nothing of ours that is new is alive."""
    _trained()
    before = photograph.taken()
    others = {id(each) for each in _alive()}  # of tests before, in the same process
    yield
    _trained()
    assert photograph.differences(before, photograph.taken()) == set()
    assert [type(each) for each in _alive() if id(each) not in others] == []


def _alive() -> list[object]:
    return [each for each in gc.get_referrers(*KINDS) if type(each) in KINDS]


def _trained() -> Training:
    training = Training()
    training.steps(2)
    return training


def watched(part: Part, folder: Path) -> set[str]:
    """What it finds in a training."""
    training = Training()
    with part(training, folder) as found:
        training.steps(2)
        drawn = torch.get_rng_state()
    plain = _trained()
    assert torch.equal(drawn, torch.get_rng_state())
    assert all(map(torch.equal, training.model.state_dict().values(), plain.model.state_dict().values()))
    return found()


@pytest.fixture(scope="module")
def alone(_all_is_loaded: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What each finds where nobody else watches."""
    folder = tmp_path_factory.mktemp("alone")
    return {name: watched(part, folder) for name, part in PARTS.items()}


def test_each_finds_what_is_there_to_find(alone: dict[str, set[str]]) -> None:
    assert {each.partition(" ")[0] for each in alone["audit"]} >= {"TA417", "TA605"}
    assert len(alone["invariants"]) == 1
    assert {"attention_entropy/0.head_0", "activation/3/norm"} <= alone["monitor"]
    assert any(each.startswith("loss ") for each in alone["snapshots"])
    assert "op torch.nn.functional.scaled_dot_product_attention " in alone["trace"]


by_part = pytest.mark.parametrize("name", PARTS)


@pytest.mark.usefixtures("nothing_is_left")
@by_part
def test_one_gives_back_what_it_takes(name: str, alone: dict[str, set[str]], tmp_path: Path) -> None:
    """N25: and finds the same in its second life, after all others have had one."""
    assert watched(PARTS[name], tmp_path) == alone[name]


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("seed", range(2))
def test_one_after_the_other_each_finds_the_same(
    seed: int, alone: dict[str, set[str]], tmp_path: Path
) -> None:
    """N25: after a monitor had watched attention, no trace and no invariant saw it in that process."""
    order = random.Random(seed).sample(sorted(PARTS), len(PARTS))
    for name in order:
        assert watched(PARTS[name], tmp_path) == alone[name], order


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("seed", range(2))
def test_beside_the_others_each_finds_the_same(seed: int, alone: dict[str, set[str]], tmp_path: Path) -> None:
    choose = random.Random(seed)
    begun, ended = (choose.sample(sorted(PARTS), len(PARTS)) for _ in range(2))
    training = Training()
    on = {name: PARTS[name](training, tmp_path) for name in begun}
    found = {name: part.__enter__() for name, part in on.items()}
    training.steps(2)
    for name in ended:
        on.pop(name).__exit__(None, None, None)
    for name, said in found.items():
        assert said() == alone[name], (begun, ended)


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("seed", range(3))
def test_they_begin_and_end_in_the_middle_of_each_other(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    training = Training()
    on: list[tuple[str, AbstractContextManager[Found]]] = []
    said = []
    for _ in range(16):
        if on and choose.random() < 0.5:
            name, part = on.pop(choose.randrange(len(on)))
            part.__exit__(None, None, None)
            said.append(f"{name} ends")
        else:
            name = choose.choice(sorted(PARTS))
            part = PARTS[name](training, tmp_path)
            part.__enter__()
            on.append((name, part))
            said.append(f"{name} begins")
        if choose.random() < 0.5:
            training.steps(1)
            said.append("a step")
    print(said)  # pytest shows it of a test that fails
    for _, part in on:
        part.__exit__(None, None, None)


@pytest.mark.usefixtures("nothing_is_left")
def test_each_place_is_wrapped_once_with_everything_on(tmp_path: Path) -> None:
    """There were four wrappers around `DataLoader.__iter__`, four around `GradScaler.step`, and six step hooks."""
    assert _wrappers() == {}
    assert _hooks() == [0, 0, 0, 0]
    training = Training()
    seen: list[dict[str, int]] = []
    hooked: list[list[int]] = []

    def look(*_: object) -> None:
        seen.append(_wrappers())
        hooked.append(_hooks())

    training.model[0].register_forward_hook(look)
    with ExitStack() as stack:
        options = {"record": tmp_path / "run", "snapshots": "every 1"}
        stack.enter_context(audit(training, tmp_path, **options))
        for part in (invariants, monitor, trace, audit):
            stack.enter_context(part(training, tmp_path))
        training.steps(1)
    most = {place: max(each.get(place, 0) for each in seen) for place in set().union(*seen)}
    assert {place: count for place, count in most.items() if count > 1} == {}
    assert {
        "torch.utils.data.dataloader.DataLoader.__iter__",
        "torch.autograd.backward",
        "torch.log",
    } <= most.keys()
    assert [max(counts) for counts in zip(*hooked, strict=True)] == [1, 1, 1, 1]


def _wrappers() -> dict[str, int]:
    """How many wrappers of ours are around each function that has one."""
    found = {path: photograph.watched(seen.value) for path, seen in photograph.taken().items()}
    return {path: depth for path, depth in found.items() if depth}


def _hooks() -> list[int]:
    """How many global hooks are on: before and after steps, before and after forward passes."""
    return [
        len(table)
        for table in (
            optimizer._global_optimizer_pre_hooks,
            optimizer._global_optimizer_post_hooks,
            module._global_forward_pre_hooks,
            module._global_forward_hooks,
        )
    ]


@pytest.mark.usefixtures("nothing_is_left")
def test_the_starts_of_processes_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    starts = {"multiprocessing.process.BaseProcess.start", "subprocess.Popen.__init__"}
    for _ in range(2):
        api.enable(output=None, live=False)
        assert _wrappers().keys() >= starts
        subprocess.run([sys.executable, "-c", ""], check=True)
        assert len(list(tmp_path.iterdir())) == 1
        api.disable()
        assert _wrappers() == {}
        assert list(tmp_path.iterdir()) == []


# -- what does not end as it should -----------------------------------------------------------------------------


@pytest.mark.usefixtures("nothing_is_left")
def test_an_audit_that_is_ended_in_the_middle_of_a_step_disturbs_nobody(tmp_path: Path) -> None:
    """N25: where another audit watched too, `optimizer.step()` raised, as hooks went while torch called them."""
    ended: list[Finding] = []

    stack = ExitStack()

    def end(finding: Finding) -> None:
        if not ended:
            ended.append(finding)
            stack.close()

    training = Training()
    options = {"record": tmp_path / "run", "snapshots": "every 1"}
    with stack:
        stack.enter_context(audit(training, tmp_path, on_finding=end, **options))
        with audit(training, tmp_path) as found:
            training.steps(2)
    assert ended
    assert {each.partition(" ")[0] for each in found()} >= {"TA417", "TA605"}


@pytest.mark.usefixtures("nothing_is_left")
def test_an_audit_that_died_gives_back_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(own: Optimizers, *_: object) -> None:
        raise RuntimeError("of ours")

    with monkeypatch.context() as patching:
        patching.setattr(Optimizers, "_measure", fail)
        training = Training()
        with audit(training, tmp_path) as found:
            training.steps(2)
    assert any(each.startswith("TA000") for each in found())


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("name", [name for name in PARTS if name != "monitor"])
def test_what_fails_while_it_begins_gives_back_all(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N25: half of the hooks stayed on."""

    def fail(*_: object) -> None:
        raise RuntimeError("of ours")

    training = Training()
    with monkeypatch.context() as patching:
        patching.setitem(hub._PLACES, "batch", (fail,))
        with suppress(RuntimeError), PARTS[name](training, tmp_path):
            training.steps(1)


@pytest.mark.usefixtures("nothing_is_left")
def test_a_monitor_that_is_dropped_in_the_middle_of_a_step_leaves_the_model() -> None:
    training = Training()
    before = photograph.taken(model=training.model)
    watching = ModuleMonitor(monitor_step_fn=None, compiled="eager")
    watching.add_activation_metric("norm", lambda output: output.norm())
    watching.set_module(training.model)
    watching.watch_attention()
    watching.begin_step(0)
    assert photograph.differences(before, photograph.taken(model=training.model)) != set()
    del watching
    assert photograph.differences(before, photograph.taken(model=training.model)) == set()


# -- frameworks -------------------------------------------------------------------------------------------------


def under_accelerate(folder: Path, watched: bool) -> object:
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = accelerate.Accelerator(cpu=True)
    training = Training()
    if watched:
        of_accelerate.watch(accelerator, output=None, live=False)
        of_accelerate.snapshots(accelerator, folder / "snapshots")
    model, optimizer, loader = accelerator.prepare(training.model, training.optimizer, training.loader)
    if watched:
        of_accelerate.monitor(accelerator, model)
    for inputs, targets in loader:
        optimizer.zero_grad()
        accelerator.backward(F.cross_entropy(model(inputs), targets))
        optimizer.step()
    accelerator.end_training()
    assert vars(accelerator).keys().isdisjoint({"log", "end_training"})
    return model


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.training_of = [Training()]
        self.model = self.training_of[0].model

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        return F.cross_entropy(self.model(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), lr=0.01)


def under_lightning(folder: Path, watched: bool) -> object:
    module = Module()
    callbacks = [
        of_lightning.AuditCallback(output=None, live=False),
        of_lightning.MonitorCallback(),
        of_lightning.SnapshotCallback(folder / "snapshots"),
    ]
    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", callbacks=callbacks if watched else [], **quiet
    )
    trainer.fit(module, module.training_of[0].loader)
    return module.model


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Training().model

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def under_transformers(folder: Path, watched: bool) -> object:
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    model = Classifier()
    data = [{"x": inputs, "labels": targets} for inputs, targets in Training().loader.dataset]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        max_steps=2,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    callbacks = [
        of_transformers.AuditCallback(output=None, live=False),
        of_transformers.MonitorCallback(),
        of_transformers.SnapshotCallback(folder / "snapshots"),
    ]
    trainer = transformers.Trainer(
        model, arguments, train_dataset=data, callbacks=callbacks if watched else []
    )
    trainer.train()
    return model


@pytest.mark.parametrize("train", [under_accelerate, under_lightning, under_transformers])
def test_what_follows_a_framework_ends_with_its_training(
    train: Callable[[Path, bool], nn.Module], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for life in range(2):
        (tmp_path / str(life)).mkdir()
        train(tmp_path / str(life), life == 1)
    plain = train(tmp_path, False)
    before = photograph.taken()
    (tmp_path / "watched").mkdir()
    model = train(tmp_path / "watched", True)
    assert photograph.differences(before, photograph.taken()) == set()
    assert all(map(torch.equal, model.state_dict().values(), plain.state_dict().values()))
