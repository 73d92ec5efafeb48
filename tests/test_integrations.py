"""The callbacks for Lightning and Transformers, and `watch` for Accelerate: they watch what they are put into, count what
they find, end with it, and change nothing."""

import copy
import inspect
import json
import os
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from commands import warm
from torch import Tensor, nn

import ta_runtime
from ta_lint.core.errors import UsageError
from ta_runtime import AuditFailed, api
from ta_runtime.integrations.watch import Watch, WatchOptions

lightning = pytest.importorskip("lightning")
transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")

import test_frameworks as healthy
from accelerate.tracking import GeneralTracker
from lightning.pytorch.loggers.logger import Logger
from test_frameworks import QUIET, Classifier, Ran, Sentences, batches, same, trainer_of

from ta_runtime.integrations.accelerate import watch
from ta_runtime.integrations.lightning import AuditCallback as LightningCallback
from ta_runtime.integrations.transformers import AuditCallback as TransformersCallback

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[1]
PATH = f"{ROOT / 'tests'}{os.pathsep}{ROOT}"
EVERY_STEP = WatchOptions(every_n_steps=1)


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _nothing_left_on() -> Any:
    yield
    left = api.running()
    ta_runtime.disable()
    assert left is None


def reported(name: str = "ta-runtime.sarif") -> list[tuple[str, str]]:
    """The rules of a report, and the text of the lines they are on."""
    found = []
    for result in json.loads(Path(name).read_text())["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert Path(place["artifactLocation"]["uri"]).name == Path(__file__).name
        line = Path(__file__).read_text().splitlines()[place["region"]["startLine"] - 1]
        found.append((result["ruleId"], line.strip()))
    return sorted(found)


def ran(code: str, *command: str, status: int = 0, name: str = "train.py") -> str:
    """What a script of this text says on standard error."""
    Path(name).write_text(code)
    done = warm(Path(), *command, name, timeout=300, PYTHONPATH=PATH)
    assert done.returncode == status, done.stderr
    return done.stderr


# -- what they share ------------------------------------------------------------------------------------------------


def test_no_framework_is_imported_before_it_is_asked_for() -> None:
    ran(
        "import sys, ta_runtime, ta_runtime.integrations.watch\n"
        "assert not {'lightning', 'pytorch_lightning', 'transformers', 'accelerate'} & sys.modules.keys()\n"
    )


def test_a_framework_that_is_missing_is_named_with_what_to_install() -> None:
    ran(
        "from importlib import import_module\n"
        "from importlib.machinery import PathFinder\n"
        "from ta_lint.core.errors import UsageError\n"
        "missing = {'lightning', 'pytorch_lightning', 'transformers', 'accelerate'}\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *rest: None if name in missing else find(name, *rest)\n"
        "for framework in ('lightning', 'transformers', 'accelerate'):\n"
        "    try:\n"
        "        import_module(f'ta_runtime.integrations.{framework}')\n"
        "    except UsageError as error:\n"
        "        assert f\"pip install 'ta-lint[{framework}]'\" in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(framework)\n"
    )


def test_each_framework_is_an_extra() -> None:
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert {"lightning", "transformers", "accelerate"} <= set(extras)


def test_the_options_and_their_defaults_are_those_of_enable() -> None:
    assert list(WatchOptions.__annotations__) == list(inspect.signature(ta_runtime.enable).parameters)
    ta_runtime.enable()
    audit = api.running()
    ta_runtime.disable()
    assert audit is not None
    settings = Watch({})._own.settings
    assert settings == replace(audit.settings, config=settings.config, configs=settings.configs)


@pytest.mark.parametrize("make", [LightningCallback, TransformersCallback])
def test_what_is_wrong_with_an_option_is_said_when_it_is_given(make: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="no argument every_step"):
        make(every_step=1)
    with pytest.raises(UsageError, match="every_n_steps: -1"):
        make(every_n_steps=-1)
    with pytest.raises(UsageError, match="there is no folder"):
        make(output="nowhere/report.sarif")


def test_what_a_training_left_on_is_ended_by_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Watch({"output": None}), Watch({"output": None})
    first.begin()
    left = api.running()
    second.begin()
    assert left is not None
    assert not left.session.started
    assert api.running() not in (left, None)
    first.end()  # nobody's business any more
    assert api.running() is not None
    second.end()
    assert capsys.readouterr().err.count("No training step was seen") == 2


def test_an_audit_that_cannot_begin_is_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(audit: object) -> None:
        raise OSError("no space left")

    watching = Watch({})
    monkeypatch.setattr(api, "begin", begin)
    watching.begin()
    watching.end()
    assert "ta-runtime: the training is not watched as it should be: OSError: no space left" in (
        capsys.readouterr().err
    )


# -- Lightning ------------------------------------------------------------------------------------------------------


class Metrics(Logger):
    """A logger that keeps what it is given."""

    name, version = "metrics", 0

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[tuple[int, dict[str, float]]] = []

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.logged.append((step, metrics))

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        pass

    @property
    def counted(self) -> list[tuple[int, dict[str, float]]]:
        return [(step, metrics) for step, metrics in self.logged if "ta/errors" in metrics]


class Careless(Classifier):
    def __init__(self) -> None:
        super().__init__()
        self.forgotten = nn.Linear(8, 8)

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=1e-3, weight_decay=0.1)


CARELESS = [
    ("TA401", "return torch.optim.Adam(self.parameters(), lr=1e-3, weight_decay=0.1)"),
    ("TA500", "self.forgotten = nn.Linear(8, 8)"),
]


def fit(model: Any, *callbacks: Any, logger: Any = False, count: int = 8) -> None:
    options = {**QUIET, "logger": logger}
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=list(callbacks), log_every_n_steps=1, **options
    )
    trainer.fit(model, batches(count), batches(2))


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate_grad_batches": 2, "gradient_clip_val": 0.05}, {"precision": "bf16-mixed"}],
    ids=["plain", "accumulated and clipped", "bf16-mixed"],
)
def test_a_healthy_lightning_run_gives_nothing_and_stays_as_it_was(options: dict[str, Any]) -> None:
    plain = healthy.fit(**options)
    callback = LightningCallback(**EVERY_STEP)
    assert same(healthy.fit(**options, callbacks=[callback]), plain)
    assert reported() == []
    assert callback._watch._own.session.step_count == len(plain.norms)


def test_a_lightning_run_has_its_findings_on_its_lines_and_their_number_in_its_loggers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = Metrics()
    fit(Careless(), LightningCallback(**EVERY_STEP), logger=logger)
    assert reported() == CARELESS
    assert [(step, metrics["ta/errors"], metrics["ta/warnings"]) for step, metrics in logger.counted] == [
        (1, 0, 1),
        (16, 1, 1),  # that a layer never runs is known at the end
    ]
    err = capsys.readouterr().err
    assert err.count("TA401 warning:") == 1
    assert err.count("ta-runtime: Found 1 error and 1 warning in 1 file.") == 1


def test_only_fit_is_watched() -> None:
    callback = LightningCallback()
    trainer = lightning.Trainer(accelerator="cpu", callbacks=[callback], **QUIET)
    trainer.validate(Classifier(), batches(2))
    assert not Path("ta-runtime.sarif").exists()


def test_two_fits_of_one_callback_are_in_one_report() -> None:
    class Decayed(Classifier):
        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=2e-3, weight_decay=0.2)

    callback = LightningCallback(**EVERY_STEP)
    fit(Careless(), callback)
    fit(Decayed(), callback)
    assert reported() == sorted(
        [*CARELESS, ("TA401", "return torch.optim.Adam(self.parameters(), lr=2e-3, weight_decay=0.2)")]
    )


def test_a_callback_may_be_copied_and_pickled_after_a_fit() -> None:
    callback = LightningCallback(**EVERY_STEP, ignore="TA401")
    fit(Careless(), callback)
    for twin in (copy.deepcopy(callback), pickle.loads(pickle.dumps(callback))):
        fit(Careless(), twin)
        assert reported() == CARELESS[1:]


def test_an_exception_of_a_lightning_run_ends_the_audit_and_is_its_own() -> None:
    class Broken(Classifier):
        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            if index == 3:
                raise LookupError("no such batch")
            return super().training_step(batch, index)

    with pytest.raises(LookupError, match="no such batch"):
        fit(Broken(), LightningCallback())
    assert api.running() is None
    assert "in which the run raised `LookupError`" in Path("ta-runtime.sarif").read_text()


def test_fail_level_stops_a_lightning_run() -> None:
    with pytest.raises(AuditFailed, match="TA401"):
        fit(Careless(), LightningCallback(fail_level="warning"))
    assert api.running() is None


def test_a_logger_that_raises_does_not_stop_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    class Offline(Metrics):
        def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
            if "ta/errors" in metrics:
                raise ConnectionError("no route to host")

    fit(Classifier(), LightningCallback(), logger=Offline())
    assert capsys.readouterr().err.count("ConnectionError: no route to host") == 1


def test_an_audit_that_is_on_is_followed_and_stays_on() -> None:
    logger = Metrics()
    ta_runtime.enable(output="mine.sarif", live=False, every_n_steps=1)
    mine = api.running()
    fit(Careless(), LightningCallback(rules="TA100"), logger=logger)
    assert logger.counted[-1][1]["ta/warnings"] == 1
    assert api.running() is mine
    assert mine is not None
    assert mine.on_opened == []
    ta_runtime.disable()
    assert reported("mine.sarif") == CARELESS
    assert not Path("ta-runtime.sarif").exists()


def test_the_command_is_followed_too() -> None:
    code = (
        "import test_integrations as its\n"
        "from ta_runtime import api\n"
        "its.fit(its.Careless(), its.LightningCallback(output='other.sarif'))\n"
        "assert api.running() is not None\n"
    )
    ran(code, "-m", "ta_runtime", "run", "--every=1", "--output=ta-runtime.sarif")
    assert not Path("other.sarif").exists()
    assert reported() == CARELESS


@pytest.mark.parametrize("first", ["pytorch_lightning", "ta_runtime.integrations.lightning"])
def test_the_old_name_of_lightning_works_as_well(first: str) -> None:
    """With a callback of its own class, unless it is imported after ours, and even then."""
    told = ran(
        f"import {first}\n"
        "import pytorch_lightning as pl, sys, torch\n"
        "from ta_runtime.integrations.lightning import AuditCallback\n"
        f"own = {first == 'pytorch_lightning'}\n"
        "assert issubclass(AuditCallback, pl.Callback) == own\n"
        "assert ('lightning.pytorch' in sys.modules) != own\n"
        "class Model(pl.LightningModule):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(4, 1)\n"
        "    def training_step(self, batch, index):\n"
        "        return self.layer(batch).square().mean()\n"
        "    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters(), weight_decay=0.1)\n"
        "data = torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=8)\n"
        "quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)\n"
        "trainer = pl.Trainer(max_epochs=1, accelerator='cpu', callbacks=[AuditCallback(lint=True)], **quiet)\n"
        "trainer.fit(Model(), data)\n"
    )
    assert "ta-runtime: linted 1 file: 1 suspicion" in told
    assert "train.py:14: TA401 warning" in told


# -- Transformers ---------------------------------------------------------------------------------------------------


class Logs(transformers.TrainerCallback):  # type: ignore[name-defined]
    def __init__(self) -> None:
        self.logged: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.logged.append(dict(logs))


def trained(*callbacks: Any, **options: Any) -> Ran:
    trainer = trainer_of(*callbacks, **options)
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "grad_norm" in entry]
    norms, losses = ([entry[key] for entry in logged] for key in ("grad_norm", "loss"))
    return Ran(trainer.model.state_dict(), torch.get_rng_state(), norms, losses)


@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_accumulation_steps": 2, "max_grad_norm": 0.05}, {"bf16": True, "eval_strategy": "epoch"}],
    ids=["plain", "accumulated and clipped", "bf16"],
)
def test_a_healthy_transformers_run_gives_nothing_and_stays_as_it_was(options: dict[str, Any]) -> None:
    plain = trained(**options)
    callback = TransformersCallback(**EVERY_STEP)
    assert same(trained(callback, **options), plain)
    assert reported() == []
    assert callback._watch._own.session.step_count == len(plain.norms)


def test_the_logs_of_a_trainer_have_the_number_of_findings() -> None:
    logs = Logs()
    trainer = trainer_of(TransformersCallback(**EVERY_STEP), logs, eval_strategy="epoch")
    trainer.optimizer = torch.optim.Adam(trainer.model.parameters(), lr=1e-3, weight_decay=0.1)
    metrics = trainer.train().metrics
    of_training = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [(entry["ta/errors"], entry["ta/warnings"]) for entry in of_training] == [(0, 1)] * 8
    assert [entry for entry in logs.logged if "ta/warnings" in entry] == [
        {key: value for key, value in entry.items() if key != "step"} for entry in of_training
    ]
    rest = [
        *(entry for entry in trainer.state.log_history if "loss" not in entry),
        metrics,
        trainer.evaluate(),
    ]
    assert len(rest) == 4
    assert not any("ta/errors" in entry for entry in rest)
    assert reported() == [("TA401", "metrics = trainer.train().metrics")]  # it was built before


def test_what_a_trainer_raises_is_its_own_and_the_next_training_is_watched() -> None:
    def broken(samples: Any) -> Any:
        raise LookupError("no such sample")

    callback = TransformersCallback()
    with pytest.raises(LookupError, match="no such sample"):
        trainer_of(callback, collate=broken).train()
    left = api.running()
    assert left is not None  # the Trainer has told nobody
    trainer_of(TransformersCallback(output="next.sarif")).train()
    assert not left.session.started
    assert reported("next.sarif") == []


def test_a_script_that_ends_by_an_exception_of_a_trainer_has_its_report() -> None:
    told = ran(
        "import test_integrations as its\n"
        "def broken(samples): raise LookupError('no such sample')\n"
        "its.trainer_of(its.TransformersCallback(), collate=broken).train()\n",
        status=1,
    )
    assert "LookupError: no such sample" in told
    assert "in which the run raised `LookupError`" in Path("ta-runtime.sarif").read_text()


# -- Accelerate -----------------------------------------------------------------------------------------------------


class Tracker(GeneralTracker):
    """A tracker that keeps what it is given."""

    name = "kept"
    requires_logging_directory = False

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[tuple[int | None, dict[str, float]]] = []

    @property
    def tracker(self) -> list[Any]:
        return self.logged

    def log(self, values: dict[str, float], step: int | None = None, **kwargs: Any) -> None:
        self.logged.append((step, values))


def accelerated(
    watched: bool, options: dict[str, Any] | None = None, decay: float = 0.0
) -> tuple[Ran, Tracker]:
    """A run of a loop as the documentation of Accelerate has it."""
    torch.manual_seed(0)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    tracker = Tracker()
    accelerator = accelerate.Accelerator(cpu=True, log_with=tracker, **(options or {}))
    before = set(vars(accelerator))
    if watched:
        watch(accelerator, **EVERY_STEP)
    accelerator.init_trackers("project")
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, batches(6), schedule)
    norms, losses = [], []
    for _ in range(2):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(float(accelerator.clip_grad_norm_(model.parameters(), 1.0)))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.item())
            accelerator.log({"loss": loss.item()}, step=len(losses))
    accelerator.end_training()
    assert not {"log", "end_training"} & set(vars(accelerator)) - before
    state = {name: tensor.clone() for name, tensor in accelerator.unwrap_model(model).state_dict().items()}
    return Ran(state, torch.get_rng_state(), norms, losses), tracker


@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_accumulation_steps": 2}, {"mixed_precision": "bf16"}],
    ids=["plain", "accumulated", "bf16"],
)
def test_a_healthy_accelerate_run_gives_nothing_and_stays_as_it_was(options: dict[str, Any]) -> None:
    plain, _ = accelerated(False, options)
    run, tracker = accelerated(True, options)
    assert same(run, plain)
    assert reported() == []
    assert tracker.logged == [
        (step, {"ta/errors": 0, "ta/warnings": 0, "loss": loss}) for step, loss in enumerate(run.losses, 1)
    ]


def test_what_is_logged_under_accelerate_has_the_number_of_findings() -> None:
    _, tracker = accelerated(True, decay=0.1)
    optimizer = "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=decay)"
    assert reported() == [("TA401", optimizer)]
    assert [values["ta/warnings"] for _, values in tracker.logged] == [1] * 12


TWO_PROCESSES = """
import hashlib, os, sys
import accelerate, torch, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from ta_runtime.integrations.accelerate import watch

def train():
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision="bf16")
    if "watched" in sys.argv:
        watch(accelerator, every_n_steps=1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=0.1)  # found
    inputs = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            accelerator.backward(F.cross_entropy(model(inputs), labels))
            optimizer.step()
            optimizer.zero_grad()
    weights = b"".join(tensor.numpy().tobytes() for tensor in accelerator.unwrap_model(model).state_dict().values())
    rank = accelerator.process_index
    assert accelerator.num_processes == 2
    accelerator.end_training()
    with open(f"{'-'.join(sys.argv[1:])}.{rank}", "w") as kept:
        kept.write(hashlib.sha256(weights).hexdigest())

train()
sys.stderr.flush()
os._exit(0)  # DDP never gives its process group back, so gloo's threads run while Python ends, and that aborted some ranks
"""


def test_two_processes_under_accelerate_stay_as_they_were_and_write_one_report() -> None:
    Path("train.py").write_text(TWO_PROCESSES)
    command = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    for word in ("plain", "watched"):
        done = warm(Path(), *command, "train.py", word, timeout=300, PYTHONPATH=PATH)
        assert done.returncode == 0, done.stderr
    weights = {Path(f"{word}.{rank}").read_text() for word in ("plain", "watched") for rank in (0, 1)}
    assert len(weights) == 1
    assert [path.name for path in Path().glob("*.sarif")] == ["ta-runtime.sarif"]
    [result] = json.loads(Path("ta-runtime.sarif").read_text())["runs"][0]["results"]
    line = TWO_PROCESSES.splitlines().index(next(x for x in TWO_PROCESSES.splitlines() if "# found" in x)) + 1
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == (
        "TA401",
        line,
    )
    assert done.stderr.count("TA401 warning:") == 1  # rank 0 speaks
    assert done.stderr.count("ta-runtime: Found 1 warning in 1 file.") == 1


# -- the documentation ----------------------------------------------------------------------------------------------


def test_the_examples_of_the_documentation_run_as_they_are_written() -> None:
    section = (ROOT / "docs" / "runtime.md").read_text().partition("## Frameworks\n")[2].partition("\n## ")[0]
    examples = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    model = trainer_of().model
    arguments = transformers.TrainingArguments(output_dir="out", report_to="none", use_cpu=True)
    given = [
        {"model": Careless(), "loader": batches(4)},
        {"model": model, "arguments": arguments, "dataset": Sentences()},
        {},
    ]
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    for example, names in zip(examples, given, strict=True):
        assert api.running() is None
        exec(compile(example, "example.py", "exec"), names)  # noqa: S102
        if "accelerator" in names:
            assert api.running() is not None
            names["accelerator"].end_training()
        assert Path("ta-runtime.sarif").exists()
        Path("ta-runtime.sarif").unlink()
