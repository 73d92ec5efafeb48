"""The monitor and the snapshots as callbacks of Lightning and Transformers, and under Accelerate: they follow the steps of
the framework, measure what trains and nothing else, and change nothing."""

import copy
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ta_lint.core.errors import UsageError
from ta_runtime.monitor import ModuleMonitor
from ta_runtime.runs import Run

lightning = pytest.importorskip("lightning")
transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")

import test_frameworks as healthy
from test_frameworks import QUIET, Adversaries, Classifier, Ran, Sentences, batches, same, trainer_of
from test_integrations import Metrics, Tracker

from ta_runtime.integrations import accelerate as under_accelerate
from ta_runtime.integrations import lightning as under_lightning
from ta_runtime.integrations import transformers as under_transformers

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def total(values: dict[str, float], kind: str) -> float:
    """The norm of all parameters or gradients together."""
    return math.sqrt(sum(value**2 for key, value in values.items() if key.startswith(f"{kind}/")))


def hooks(model: nn.Module) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def recorded(folder: str = "run") -> dict[str, list[int]]:
    """The steps of each kind of record of a run."""
    found: dict[str, set[int]] = {}
    for row in Run(Path(folder)).records.to_pylist():
        found.setdefault(row["kind"], set()).add(row["step"])
    return {kind: sorted(steps) for kind, steps in found.items()}


def digest(folder: str, kind: str, name: str, step: int) -> list[str]:
    rows = Run(Path(folder)).records.to_pylist()
    return [row["digest"] for row in rows if (row["kind"], row["name"], row["step"]) == (kind, name, step)]


# -- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [under_lightning, under_transformers])
def test_what_is_wrong_with_an_option_is_said_when_it_is_given(module: Any) -> None:
    with pytest.raises(TypeError, match="no option every_step"):
        module.MonitorCallback(every_step=1)
    with pytest.raises(UsageError, match="every_n_steps: 0"):
        module.MonitorCallback(every_n_steps=0)
    with pytest.raises(UsageError, match=r"gradients: .*'nrom'"):
        module.MonitorCallback(gradients=["nrom"])
    with pytest.raises(UsageError, match="activations: the given monitor"):
        module.MonitorCallback(ModuleMonitor(), activations=())
    with pytest.raises(TypeError, match="no argument every"):
        module.SnapshotCallback("run", every=1)
    with pytest.raises(UsageError, match="schedule: 'sometimes'"):
        module.SnapshotCallback("run", schedule="sometimes")


def test_metrics_are_names_of_statistics_or_functions_of_ones_own() -> None:
    spread = {"spread": lambda x: x.max() - x.min()}
    callback = under_lightning.MonitorCallback(activations=spread, parameters="rms", gradients=())
    fit(callback)
    kinds = {(key.split("/")[0], key.split("/")[-1]) for key in callback.monitor.get_all_metrics()[3]}
    assert kinds == {("activation", "spread"), ("parameter", "rms")}


# -- Lightning ------------------------------------------------------------------------------------------------------


def fit(*callbacks: Any, model: Any = None, resume: Any = None, count: int = 6, **options: Any) -> Any:
    model = model if model is not None else Classifier()
    options = {**QUIET, "max_epochs": 2, "log_every_n_steps": 4, **options}
    trainer = lightning.Trainer(accelerator="cpu", callbacks=list(callbacks), **options)
    trainer.fit(model, batches(count), batches(2), ckpt_path=resume)
    return trainer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"accumulate_grad_batches": 2, "gradient_clip_val": 0.05},
        {"accumulate_grad_batches": 4, "val_check_interval": 1},
        {"precision": "bf16-mixed"},
        {"automatic": False},
    ],
    ids=["plain", "accumulated and clipped", "validated amid a step", "bf16-mixed", "manual"],
)
def test_a_lightning_run_stays_as_it_was_and_its_numbers_are_those_of_the_run(
    options: dict[str, Any],
) -> None:
    plain = healthy.fit(**options)
    callback = under_lightning.MonitorCallback(every_n_steps=1, before_clip=True)
    taking = under_lightning.SnapshotCallback("run", schedule="every 1")
    ran = healthy.fit(**options, callbacks=[callback, taking])
    assert same(ran, plain)
    metrics = callback.monitor.get_all_metrics()
    clips = options.get("gradient_clip_val") or not options.get("automatic", True)
    assert list(metrics) == list(range(len(metrics)))
    norms = ran.norms
    assert len(metrics) == len(norms)
    for values, norm in zip(metrics.values(), norms, strict=True):
        assert total(values, "gradient") == pytest.approx(min(norm, 0.05) if clips else norm, rel=1e-4)
        if clips:
            assert total(values, "gradient_before_clip") == pytest.approx(norm, rel=1e-4)
        assert {
            "activation/net.0/std",
            "activation/[root module]/mean",
            "parameter/net.3.bias/norm",
        } <= values.keys()
    steps = list(range(len(norms)))
    kinds = recorded()
    assert kinds["parameter"] == kinds["gradient"] == kinds["loss"] == kinds["activation"] == steps
    assert len(digest("run", "loss", "loss", 0)) == len(ran.losses) // len(norms) or options.get(
        "val_check_interval"
    )


def test_activations_are_those_of_all_micro_batches_and_of_no_validation() -> None:
    heard: list[Tensor] = []

    class Hearing(Classifier):
        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            heard.append(self.net[0](batch[0]).detach())  # the second time in this batch
            return super().training_step(batch, index)

        def validation_step(self, batch: list[Tensor], index: int) -> None:
            self.net(batch[0] + 100)  # a part, and not the model as a whole

    torch.manual_seed(0)
    callback = under_lightning.MonitorCallback(every_n_steps=1)
    fit(callback, model=Hearing(), accumulate_grad_batches=2, val_check_interval=1, max_epochs=1)
    for step, values in callback.monitor.get_all_metrics().items():
        both = torch.cat(heard[2 * step : 2 * step + 2])
        assert values["activation/net.0/mean"] == pytest.approx(both.mean().item(), rel=1e-4)


def test_parameters_are_those_before_the_update() -> None:
    model = Classifier()
    before = {name: parameter.detach().norm().item() for name, parameter in model.named_parameters()}
    callback = under_lightning.MonitorCallback(every_n_steps=1)
    fit(callback, model=model)
    values = callback.monitor.get_all_metrics()[0]
    assert {name: values[f"parameter/{name}/norm"] for name in before} == pytest.approx(before, rel=1e-5)


def test_the_loggers_of_lightning_get_the_steps_that_the_trainer_logs() -> None:
    logger = Metrics()

    class Logging(Classifier):
        def on_before_backward(self, loss: Tensor) -> None:
            self.log("train_loss", loss.detach())

    fit(under_lightning.MonitorCallback(), model=Logging(), logger=logger)
    own = [step for step, metrics in logger.logged if "train_loss" in metrics]
    monitored = [step for step, metrics in logger.logged if "gradient/net.0.weight/norm" in metrics]
    assert own == monitored == [3, 7, 11]


def test_one_logger_that_raises_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Offline(Metrics):
        def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
            if "activation/net.0/std" in metrics:
                raise ConnectionError("no route to host")

    logger = Metrics()
    fit(under_lightning.MonitorCallback(every_n_steps=1), logger=[Offline(), logger])
    assert len([1 for _, metrics in logger.logged if "activation/net.0/std" in metrics]) == 12
    assert caplog.text.count("Offline: gets no more numbers") == 1


def test_two_optimizers_under_lightning_have_each_its_own_gradients_in_one_step() -> None:
    torch.manual_seed(0)
    model = Adversaries()
    callback = under_lightning.MonitorCallback(every_n_steps=1)
    taking = under_lightning.SnapshotCallback("run", schedule="every 1")
    fit(callback, taking, model=model, max_epochs=1)
    plain = healthy.fought()
    assert model.norms == plain.norms
    metrics = callback.monitor.get_all_metrics()
    assert list(metrics) == recorded()["gradient"] == [0, 1, 2, 3, 4, 5]
    for step, values in metrics.items():
        for part, norm in zip(("critic", "generator"), model.norms[2 * step : 2 * step + 2], strict=True):
            own = {key: value for key, value in values.items() if key.startswith(f"gradient/{part}.")}
            assert total(own, "gradient") == pytest.approx(norm, rel=1e-4)


def test_steps_go_on_from_a_checkpoint() -> None:
    checkpoint = lightning.pytorch.callbacks.ModelCheckpoint(
        dirpath="kept", every_n_train_steps=5, save_last=True
    )
    fit(checkpoint, max_epochs=1, enable_checkpointing=True)
    callback = under_lightning.MonitorCallback(every_n_steps=1)
    taking = under_lightning.SnapshotCallback("run", schedule="every 1")
    trainer = fit(callback, taking, resume="kept/last.ckpt")
    last = trainer.global_step
    first = next(iter(callback.monitor.get_all_metrics()))
    assert first == 5
    assert list(callback.monitor.get_all_metrics()) == recorded()["gradient"] == list(range(first, last))


def test_two_fits_of_one_callback_are_told_apart() -> None:
    callback = under_lightning.MonitorCallback(every_n_steps=1)
    taking = under_lightning.SnapshotCallback("run", schedule="first 2")
    fit(callback, taking)
    first = callback.monitor.get_all_metrics()
    model = Classifier()
    fit(callback, taking, model=model, max_epochs=1)
    second = callback.monitor.get_all_metrics()
    assert (len(first), len(second)) == (12, 6)
    assert first[0] != second[0]
    assert recorded()["parameter"] == recorded("run.2")["parameter"] == [0, 1]
    assert hooks(model) == 0
    fit(callback, model=model, max_epochs=1)
    assert len(callback.monitor.get_all_metrics()) == 6


def test_a_monitor_that_is_given_is_used_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    model = Classifier()
    monitor = ModuleMonitor(lambda step: step in (2, 5))
    monitor.set_module(model.net)
    monitor.add_gradient_metric("abs_max", metric_regex="3")
    callback = under_lightning.MonitorCallback(monitor)
    fit(callback, model=model)
    assert callback.monitor is monitor
    metrics = monitor.get_all_metrics()
    keys = ["gradient/3.weight/abs_max", "gradient/3.bias/abs_max"]
    assert {step: list(values) for step, values in metrics.items()} == {2: keys, 5: keys}
    assert capsys.readouterr().err == ""
    fit(callback)  # another model
    assert capsys.readouterr().err.count("the given monitor watches another model") == 1


def test_an_exception_of_a_lightning_run_leaves_nothing_behind() -> None:
    class Broken(Classifier):
        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            if index == 3:
                raise LookupError("no such batch")
            return super().training_step(batch, index)

    model = Broken()
    clip = torch.nn.utils.clip_grad_value_
    callback = under_lightning.MonitorCallback(every_n_steps=1, before_clip=True)
    taking = under_lightning.SnapshotCallback("run", schedule="every 1")
    with pytest.raises(LookupError, match="no such batch"):
        fit(callback, taking, model=model)
    assert hooks(model) == 0
    assert "configure_gradient_clipping" not in vars(model)
    assert torch.nn.utils.clip_grad_value_ is clip
    assert taking.snapshots is None
    assert recorded()["gradient"] == [0, 1, 2]
    assert list(callback.monitor.get_all_metrics())[:3] == [0, 1, 2]


def test_what_goes_wrong_in_a_callback_is_said_once_and_the_training_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(ModuleMonitor, "monitor_gradients", broken)
    model = Classifier()
    fit(under_lightning.MonitorCallback(every_n_steps=1), model=model)
    assert capsys.readouterr().err.count("OSError: no space left") == 1
    assert hooks(model) == 0
    assert len(model.norms) == 12


def test_only_fit_is_monitored() -> None:
    callback = under_lightning.MonitorCallback(every_n_steps=1)
    trainer = lightning.Trainer(accelerator="cpu", callbacks=[callback], **QUIET)
    trainer.validate(Classifier(), batches(2))
    assert callback.monitor.get_all_metrics() == {}


@pytest.mark.parametrize("of", [("parameter",), ("parameter", "gradient", "optimizer")])
def test_the_first_snapshot_of_a_fit_has_the_names_of_the_module(of: tuple[str, ...]) -> None:
    """D4: Lightning's optimizer steps with a closure; parameters were `AdamW.group0.0` at step 0, and there twice."""
    model = Classifier()
    fit(under_lightning.SnapshotCallback("run", schedule="first 2", of=of), model=model)
    rows = [row for row in Run(Path("run")).records.to_pylist() if row["step"] >= 0]
    for step in (0, 1):
        found = [row["name"] for row in rows if (row["step"], row["kind"]) == (step, "parameter")]
        assert found == [name for name, _ in model.named_parameters()]
    assert all(row["digest"] for row in rows if row["kind"] == "parameter")
    assert not any("group" in row["name"] for row in rows)


def test_snapshots_of_a_fit_have_its_batches_and_none_of_a_validation() -> None:
    taking = under_lightning.SnapshotCallback("run", schedule="every 1", of=("batch", "configuration"))
    fit(taking, val_check_interval=1, max_epochs=1)
    rows = Run(Path("run")).records.to_pylist()
    loaded = [row["step"] for row in rows if row["name"] == "loaded.0"]
    assert loaded == [0, 1, 2, 3, 4, 5]
    assert {row["text"] for row in rows if row["name"] == "DataLoader.num_workers"} == {"0"}


def test_a_batch_is_recorded_as_it_was_before_the_model_edits_it() -> None:
    """As fkat's Introspection does not: it hashes the batch when the step is over."""

    class Editing(Classifier):
        def forward(self, inputs: Tensor) -> Tensor:
            return super().forward(inputs.mul_(0.5))

    for name, model in (("editing", Editing()), ("plain", Classifier())):
        fit(under_lightning.SnapshotCallback(name, schedule="first 1"), model=model)
    assert digest("editing", "batch", "0", 0) == digest("plain", "batch", "0", 0) != []


def test_callbacks_may_be_copied_and_pickled() -> None:
    monitoring = under_lightning.MonitorCallback(every_n_steps=3)
    taking = under_lightning.SnapshotCallback("run", schedule="first 2")
    fit(monitoring, taking)
    for copied in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        twin, other = copied(monitoring), copied(taking)
        fit(twin, other, max_epochs=1)
        assert list(twin.monitor.get_all_metrics()) == [0, 3]
    assert {path.name for path in Path().iterdir()} >= {"run", "run.2"}


# -- Transformers ---------------------------------------------------------------------------------------------------


def trained(*callbacks: Any, **options: Any) -> tuple[Ran, Any]:
    trainer = trainer_of(*callbacks, **options)
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "grad_norm" in entry]
    norms, losses = ([entry[key] for entry in logged] for key in ("grad_norm", "loss"))
    return Ran(trainer.model.state_dict(), torch.get_rng_state(), norms, losses), trainer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_accumulation_steps": 2, "max_grad_norm": 0.05},
        {"bf16": True, "eval_strategy": "steps", "eval_steps": 1},
    ],
    ids=["plain", "accumulated and clipped", "bf16 and validated"],
)
def test_a_transformers_run_stays_as_it_was_and_its_log_has_the_numbers(options: dict[str, Any]) -> None:
    plain, _ = trained(**options)
    callback = under_transformers.MonitorCallback(before_clip=True)
    taking = under_transformers.SnapshotCallback("run", schedule="every 1")
    ran, trainer = trained(callback, taking, **options)
    assert same(ran, plain)
    metrics = callback.monitor.get_all_metrics()
    steps = list(range(len(ran.norms)))
    kinds = recorded()
    assert list(metrics) == kinds["gradient"] == kinds["activation"] == steps
    clip = options.get("max_grad_norm", 1.0)
    for values, norm in zip(metrics.values(), ran.norms, strict=True):
        assert total(values, "gradient_before_clip") == pytest.approx(norm, rel=1e-4)
        assert total(values, "gradient") == pytest.approx(min(norm, clip), rel=1e-4)
    for step, entry in enumerate(entry for entry in trainer.state.log_history if "loss" in entry):
        assert entry["monitor/step"] == entry["step"] - 1 == step
        assert {key: entry[key] for key in metrics[step]} == pytest.approx(
            metrics[step], nan_ok=True, rel=0, abs=0
        )
    rows = Run(Path("run")).records.to_pylist()
    micro = options.get("gradient_accumulation_steps", 1)
    loaded = [row for row in rows if row["name"] == "loaded.input_ids"]
    assert len(loaded) <= len(steps) * micro + 1  # none of an evaluation; Accelerate loads one ahead


def test_a_transformers_run_is_monitored_in_the_steps_it_logs_and_no_other() -> None:
    callback = under_transformers.MonitorCallback()
    options: dict[str, Any] = {"eval_strategy": "steps", "eval_steps": 1}
    trainer = trainer_of(callback, **options)
    trainer.args.logging_steps = 3
    trainer.train()
    assert list(callback.monitor.get_all_metrics()) == [2, 5]
    entries = [entry for entry in trainer.state.log_history if "monitor/step" in entry]
    assert [entry["step"] for entry in entries] == [3, 6]
    assert hooks(trainer.model) == 0


def test_a_forward_pass_without_gradients_inside_a_training_step_is_not_monitored() -> None:
    class Generating(transformers.Trainer):  # type: ignore[name-defined]
        def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
            with torch.no_grad():
                model(input_ids=torch.zeros(1, 12, dtype=torch.long))
            return super().training_step(model, inputs, *args, **kwargs)

    found = []
    for kind in (transformers.Trainer, Generating):
        callback = under_transformers.MonitorCallback(every_n_steps=1)
        trainer = trainer_of(callback, lr_scheduler_type="constant")
        trainer.model.config.use_cache = False
        for module in trainer.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        trainer.__class__ = kind
        trainer.train()
        found.append(callback.monitor.get_all_metrics()[0]["activation/transformer.wte/std"])
    assert found[0] == found[1]


def test_of_a_compiled_model_a_trainer_has_all_but_what_its_layers_put_out() -> None:
    callback = under_transformers.MonitorCallback(every_n_steps=1, parameters=("norm",))
    taking = under_transformers.SnapshotCallback("run", schedule="every 1")
    trainer = trainer_of(callback, taking, max_steps=2, torch_compile=True, torch_compile_backend="eager")
    trainer.train()
    assert recorded()["gradient"] == recorded()["parameter"] == [0, 1]
    metrics = callback.monitor.get_all_metrics()
    assert list(metrics) == [0, 1]
    for values in metrics.values():
        assert {key.split("/")[0] for key in values} == {"parameter", "gradient"}


def test_what_a_trainer_raises_is_its_own_and_the_next_training_begins_anew() -> None:
    def broken(samples: Any) -> Any:
        raise LookupError("no such sample")

    monitoring = under_transformers.MonitorCallback()
    taking = under_transformers.SnapshotCallback("run", schedule="every 1")
    with pytest.raises(LookupError, match="no such sample"):
        trainer_of(monitoring, taking, collate=broken).train()
    left = taking.snapshots
    trainer_of(monitoring, taking).train()
    assert left is not None
    assert taking.snapshots is None
    assert list(monitoring.monitor.get_all_metrics()) == recorded("run.2")["gradient"] == list(range(8))


def test_steps_of_a_trainer_go_on_from_a_checkpoint() -> None:
    def trainer(*callbacks: Any) -> Any:
        made = trainer_of(*callbacks)
        made.args.save_strategy = transformers.trainer_utils.SaveStrategy.STEPS
        made.args.save_steps = 5
        return made

    trainer().train()
    callback = under_transformers.MonitorCallback()
    taking = under_transformers.SnapshotCallback("run", schedule="every 1")
    trainer(callback, taking).train(resume_from_checkpoint="out/checkpoint-5")
    assert list(callback.monitor.get_all_metrics()) == recorded()["gradient"] == [5, 6, 7]


# -- Accelerate -----------------------------------------------------------------------------------------------------


def accelerated(
    follow: Callable[[Any, nn.Module], object] | None = None,
    *,
    accumulate: int = 1,
    validate: bool = False,
    scaler: torch.amp.GradScaler | None = None,
) -> tuple[Ran, Tracker]:
    torch.manual_seed(0)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    tracker = Tracker()
    accelerator = accelerate.Accelerator(cpu=True, log_with=tracker, gradient_accumulation_steps=accumulate)
    accelerator.scaler = scaler  # that of fp16, which Accelerate itself makes for a GPU alone
    accelerator.init_trackers("project")
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, batches(6))
    if follow is not None:
        follow(accelerator, model)
    norms: list[Any] = []
    losses: list[Any] = []
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(inputs), labels)
            overflow = math.inf if scaler is not None and not losses else 1.0  # in the first step
            accelerator.backward(loss * overflow)
            if accelerator.sync_gradients:
                norms.append(float(accelerator.clip_grad_norm_(model.parameters(), 0.05)))
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        accelerator.log({"loss": loss.item()}, step=len(losses))
        if validate:
            with torch.no_grad():
                model(torch.full((8, 8), 1e3))
    accelerator.end_training()
    assert hooks(model) == 0
    return Ran(model.state_dict(), torch.get_rng_state(), norms, losses), tracker


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_accelerate_run_stays_as_it_was_and_its_trackers_get_the_numbers(accumulate: int) -> None:
    plain, _ = accelerated(accumulate=accumulate)
    monitors: list[ModuleMonitor] = []

    def follow(accelerator: Any, model: nn.Module) -> None:
        monitors.append(under_accelerate.monitor(accelerator, model, every_n_steps=2, before_clip=True))
        under_accelerate.snapshots(accelerator, "run", schedule="every 1")

    ran, tracker = accelerated(follow, accumulate=accumulate)
    assert same(ran, plain)
    metrics = monitors[0].get_all_metrics()
    steps = list(range(len(ran.norms)))
    assert recorded()["gradient"] == steps
    assert list(metrics) == steps[::2]
    for step, values in metrics.items():
        assert total(values, "gradient_before_clip") == pytest.approx(ran.norms[step], rel=1e-4)
        assert total(values, "gradient") == pytest.approx(min(ran.norms[step], 0.05), rel=1e-3)
        assert "activation/0/std" in values
    told = {values["monitor/step"]: values for _, values in tracker.logged if "monitor/step" in values}
    assert list(told) == list(metrics)
    assert all(metrics[step].items() <= values.items() for step, values in told.items())
    assert len(tracker.logged) == 6


def test_a_validation_of_an_accelerate_run_is_not_monitored() -> None:
    found = []
    for validate in (False, True):
        monitors: list[ModuleMonitor] = []
        accelerated(
            lambda accelerator, model, kept=monitors: kept.append(
                under_accelerate.monitor(accelerator, model, every_n_steps=1)
            ),
            validate=validate,
        )
        [monitor] = monitors
        found.append([values["activation/0/std"] for values in monitor.get_all_metrics().values()][:6])
    assert max(found[1]) < 10
    assert found[0][0] == found[1][0]


def test_a_step_that_a_scaler_skips_is_a_step_of_the_monitor_and_the_snapshots() -> None:
    def follow(accelerator: Any, model: nn.Module) -> None:
        monitors.append(under_accelerate.monitor(accelerator, model, every_n_steps=1, parameters=("norm",)))
        under_accelerate.snapshots(accelerator, "run", schedule="every 1")

    monitors: list[ModuleMonitor] = []
    plain, _ = accelerated(scaler=torch.amp.GradScaler("cpu", init_scale=1024.0))
    ran, _ = accelerated(follow, scaler=torch.amp.GradScaler("cpu", init_scale=1024.0))
    assert math.isnan(ran.norms.pop(0))
    assert math.isnan(plain.norms.pop(0))
    assert same(ran, plain)
    metrics = monitors[0].get_all_metrics()
    assert list(metrics) == recorded()["loss"] == list(range(6))
    assert 0 < total(metrics[5], "gradient") < math.inf
    first, second, last = (digest("run", "parameter", "0.weight", step) for step in (0, 1, 5))
    assert first == second != last


def test_a_monitor_of_ones_own_and_steps_that_go_on_under_accelerate() -> None:
    monitor = ModuleMonitor(lambda step: step % 2 == 1)
    monitor.add_parameter_metric("norm")

    def follow(accelerator: Any, model: nn.Module) -> None:
        monitor.set_module(model)
        assert under_accelerate.monitor(accelerator, monitor, step=100) is monitor
        under_accelerate.snapshots(accelerator, "run", step=100, schedule="at 103")

    accelerated(follow)
    assert list(monitor.get_all_metrics()) == [101, 103, 105]
    assert recorded()["parameter"] == [103]


def test_audit_monitor_and_snapshots_follow_one_accelerator() -> None:
    def follow(accelerator: Any, model: nn.Module) -> None:
        before.update(vars(accelerator))
        under_accelerate.watch(accelerator, output=None)
        under_accelerate.monitor(accelerator, model, every_n_steps=1)
        under_accelerate.snapshots(accelerator, "run")
        followed.append(accelerator)

    before: dict[str, Any] = {}
    followed: list[Any] = []
    _, tracker = accelerated(follow)
    assert {"ta/errors", "monitor/step", "loss"} <= tracker.logged[-1][1].keys()
    assert not {"log", "end_training"} & (vars(followed[0]).keys() - before.keys())


# -- the documentation ----------------------------------------------------------------------------------------------


def test_the_page_runs_as_it_is_written() -> None:
    page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    arguments = transformers.TrainingArguments(
        output_dir="out", report_to="none", use_cpu=True, num_train_epochs=1
    )
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    given: dict[str, dict[str, Any]] = {
        "lightning": {"model": Classifier(), "loader": batches(4)},
        "transformers": {"model": trainer_of().model, "arguments": arguments, "dataset": Sentences()},
        "accelerate": {"model": nn.Linear(8, 3), "loader": batches(4)},
    }
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        framework = next(name for name in given if f"ta_runtime.integrations.{name}" in block)
        exec(compile(block, "frameworks.md", "exec"), given[framework])  # noqa: S102
    assert {path.name for path in Path("runs").iterdir()} == {"lightning", "transformers", "accelerate"}
    assert Path("metrics.csv").read_text().startswith("step,key,value\n")


def test_the_names_of_fkat_in_the_page_lead_to_names_of_ours() -> None:
    page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    kinds = re.findall(r"^\| `checksums=\{\"(\w+)\"\}` \| `of=\(\"(\w+)\",\)` \|$", page, re.MULTILINE)
    assert [old for old, _ in kinds] == ["params", "grads", "buffers", "optimizers", "rngs", "batch"]
    for number, (_, kind) in enumerate(kinds):
        under_lightning.SnapshotCallback(f"runs/{number}", of=(kind,))
