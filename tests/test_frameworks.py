"""Lightning, Transformers and Accelerate as they are: steps, norms, losses and lines come out right, and the run as
it would have been."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ta_lint.core.finding import Finding
from ta_runtime import checks
from ta_runtime.audit.audit import Audit
from ta_runtime.facts import Gradients, Run, Step
from ta_runtime.probes.places import Place
from ta_runtime.settings import resolve

lightning = pytest.importorskip("lightning")
transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass
class Seen:
    """What an audit saw: facts as the checks are handed them, and the findings."""

    gradients: list[Gradients] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    not_seen: list[str] = field(default_factory=list)

    @property
    def places(self) -> Iterator[Place]:
        """Every line that the run was said to be at."""
        for gradients in self.gradients:
            yield gradients.place
            yield gradients.optimizer.place
            if gradients.loss_place is not None:
                yield gradients.loss_place
        for step in self.steps:
            if step.complete:
                yield step.place
            for forward in step.forwards:
                yield forward.place
                yield forward.model.place
                yield from (call.layer.place for call in forward.calls)
            yield from (loss.place for loss in step.losses)
            yield from (batch.loader.place for batch in step.batches)


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, every_n_steps: int = 1) -> Iterator[Seen]:
    """Everything that happens inside, audited with the default rules, beside checks that keep what they are given."""
    seen = Seen()
    kept = {"gradients": seen.gradients, "step": seen.steps, "run": seen.runs}

    def keeping(facts: list[Any]) -> Any:
        return lambda fact: iter([]) if facts.append(fact) is None else None

    enabled = checks.enabled
    keepers = [checks.Check("TA000", fact, keeping(facts)) for fact, facts in kept.items()]
    monkeypatch.setattr(checks, "enabled", lambda rules: [*enabled(rules), *keepers])
    monkeypatch.chdir(tmp_path)
    audit = Audit(resolve(every_n_steps=every_n_steps, live=False))
    audit.start()
    try:
        yield seen
    finally:
        audit.stop()
        seen.findings, seen.not_seen = audit.findings, audit.not_seen


def norm_of(parameters: Any) -> float:
    return math.sqrt(sum(float(p.grad.double().square().sum()) for p in parameters if p.grad is not None))


@dataclass
class Ran:
    """What a training run leaves behind. `losses` are those of the micro-batches as `backward` was called on."""

    state: dict[str, Tensor]
    rng: Tensor
    norms: list[float]
    losses: list[float]


def same(one: Ran, other: Ran) -> bool:
    """Bit for bit."""
    return (
        one.losses == other.losses
        and one.norms == other.norms
        and torch.equal(one.rng, other.rng)
        and one.state.keys() == other.state.keys()
        and all(torch.equal(tensor, other.state[name]) for name, tensor in one.state.items())
    )


def told_right(seen: Seen, ran: Ran) -> None:
    """A healthy run of one optimizer, every step audited: the facts are what the run itself recorded."""
    assert seen.findings == []
    assert seen.not_seen == []
    [run] = seen.runs
    steps = len(ran.norms)
    micro = len(ran.losses) // steps
    complete = [step for step in seen.steps if step.complete]
    assert run.steps == len(seen.gradients) == len(complete) == steps
    assert not any(step.training_forwards for step in seen.steps if not step.complete)  # a last validation
    assert [gradients.step for gradients in seen.gradients] == list(range(steps))
    for gradients, norm in zip(seen.gradients, ran.norms, strict=True):
        assert (gradients.before_clipping or gradients.total) == pytest.approx(norm, rel=1e-5)
        assert all(gradients.present)
        assert gradients.backwards == micro
    for number, gradients in enumerate(seen.gradients):
        losses = ran.losses[number * micro : (number + 1) * micro]
        assert gradients.loss == pytest.approx(sum(losses) / micro, rel=1e-5)
    for step in complete:
        assert len(step.training_forwards) == micro
        assert all(forward.complete and forward.calls for forward in step.training_forwards)
        assert all(update.change is not None and update.change > 0 for update in step.updates)
    assert {place.path for place in seen.places} == {__file__}


def batches(count: int, size: int = 8, width: int = 8) -> DataLoader[Any]:
    inputs = torch.randn(count * size, width, generator=torch.Generator().manual_seed(1))
    labels = (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long()
    return DataLoader(TensorDataset(inputs, labels), batch_size=size)


QUIET = dict.fromkeys(
    ["logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"], False
)


# -- Lightning ----------------------------------------------------------------------------------------------------


class Classifier(lightning.LightningModule):  # type: ignore[name-defined]
    """Records by hand what the audit should say."""

    def __init__(self, automatic: bool = True) -> None:
        super().__init__()
        self.automatic_optimization = automatic
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
        self.norms: list[float] = []
        self.recorded: list[float] = []

    def forward(self, inputs: Tensor) -> Tensor:
        return self.net(inputs)

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        inputs, labels = batch
        loss = F.cross_entropy(self(inputs), labels)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            self.clip_gradients(optimizer, gradient_clip_val=0.05, gradient_clip_algorithm="norm")
            optimizer.step()
        return loss

    def on_before_backward(self, loss: Tensor) -> None:
        self.recorded.append(loss.item())

    def on_after_backward(self) -> None:
        if not self.automatic_optimization:
            self.norms.append(norm_of(self.parameters()))

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.automatic_optimization:
            self.norms.append(norm_of(self.parameters()))

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        self.log("val_loss", F.cross_entropy(self(batch[0]), batch[1]))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=0.0)
        if not self.automatic_optimization:
            return optimizer
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def fit(*, automatic: bool = True, **options: Any) -> Ran:
    torch.manual_seed(0)
    model = Classifier(automatic)
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        **QUIET,
        **options,
    )
    trainer.fit(model, batches(6), batches(2))
    return Ran(model.state_dict(), torch.get_rng_state(), model.norms, model.recorded)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_clip_val": 0.05},
        {"accumulate_grad_batches": 2, "gradient_clip_val": 0.05},
        {"accumulate_grad_batches": 3},
        {"precision": "bf16-mixed"},
        {"automatic": False},
    ],
    ids=["automatic", "clipped", "accumulated and clipped", "accumulated", "bf16-mixed", "manual"],
)
def test_a_lightning_run_is_told_right_and_stays_as_it_was(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = fit(**options)
    with watched(monkeypatch, tmp_path) as seen:
        ran = fit(**options)
    assert same(ran, plain)
    told_right(seen, ran)
    clip = 0.05 if options.get("gradient_clip_val") or not options.get("automatic", True) else math.inf
    for gradients, norm in zip(seen.gradients, ran.norms, strict=True):
        assert gradients.total == pytest.approx(min(norm, clip), rel=1e-4)
    assert all(loss.function == "cross_entropy" for step in seen.steps for loss in step.losses)
    micro = options.get("accumulate_grad_batches", 1)
    assert all(sum(loss.training for loss in step.losses) == micro for step in seen.steps if step.complete)
    dtypes = {forward.autocast for step in seen.steps for forward in step.training_forwards}
    assert dtypes == {torch.bfloat16 if "precision" in options else None}
    [loader] = [loader for loader in seen.runs[0].loaders if loader.trained]
    assert loader.epochs == 2


# -- Transformers ---------------------------------------------------------------------------------------------------


class Sentences(torch.utils.data.Dataset[Any]):
    """Sequences that count up or down, the first tokens of which are not to be predicted: labels of -100."""

    def __init__(self, stride: int = 1) -> None:
        self.stride = stride

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = (self.stride * torch.arange(12) + index) % 50
        labels = ids.clone()
        labels[: 2 + index % 5] = -100
        return {"input_ids": ids, "labels": labels}


class Notes(transformers.TrainerCallback):  # type: ignore[name-defined]
    def __init__(self) -> None:
        self.norms: list[float] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.norms.append(norm_of(kwargs["model"].parameters()))


def trainer_of(*callbacks: Any, folder: Path = Path(), collate: Any = None, **options: Any) -> Any:
    transformers.set_seed(0)
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=4,
        num_train_epochs=1,
        learning_rate=1e-3,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )
    model = transformers.GPT2LMHeadModel(config)
    return transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=Sentences(),
        eval_dataset=Sentences(-1),
        data_collator=collate,
        callbacks=list(callbacks),
    )


def train(folder: Path, **options: Any) -> tuple[Ran, list[float]]:
    """The run, and the gradient norms that the trainer itself logs, which are those before clipping."""
    notes = Notes()
    losses: list[float] = []
    trainer = trainer_of(notes, folder=folder, **options)
    backward = trainer.accelerator.backward
    trainer.accelerator.backward = lambda loss, **kwargs: (
        losses.append(loss.item()),
        backward(loss, **kwargs),
    )[1]
    trainer.train()
    logged = [entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry]
    return Ran(trainer.model.state_dict(), torch.get_rng_state(), notes.norms, losses), logged


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_accumulation_steps": 2},
        {"label_smoothing_factor": 0.1},
        {"max_grad_norm": 0.05},
        {"bf16": True},
    ],
    ids=["plain", "accumulated", "label smoothing", "clipped", "bf16"],
)
def test_a_transformers_run_is_told_right_and_stays_as_it_was(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain, _ = train(tmp_path, **options)
    with watched(monkeypatch, tmp_path) as seen:
        ran, logged = train(tmp_path, **options)
    assert same(ran, plain)
    for gradients, norm, before in zip(seen.gradients, ran.norms, logged, strict=True):
        assert gradients.total == pytest.approx(norm, rel=1e-4)
        assert gradients.before_clipping == pytest.approx(before, rel=1e-4)
    told_right(seen, SimpleNamespace(norms=logged, losses=ran.losses))
    losses = [loss for step in seen.steps for loss in step.losses]
    assert len(losses) == (0 if "label_smoothing_factor" in options else 8)
    assert all(loss.options["ignore_index"] == -100 for loss in losses)
    assert all(loss.target.minimum >= 0 and loss.target.maximum < 50 for loss in losses)


# -- Accelerate -----------------------------------------------------------------------------------------------------


def accelerated(*, accumulate: int = 1, clip: float | None = None, precision: str = "no") -> Ran:
    torch.manual_seed(0)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = accelerate.Accelerator(
        cpu=True, gradient_accumulation_steps=accumulate, mixed_precision=precision
    )
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, batches(6), schedule)
    norms: list[float] = []
    losses: list[float] = []
    for _ in range(2):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(inputs), labels)
                losses.append(loss.item() / accumulate)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(norm_of(model.parameters()))
                    if clip is not None:
                        accelerator.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    return Ran(model.state_dict(), torch.get_rng_state(), norms, losses)


@pytest.mark.parametrize(
    "options",
    [{}, {"clip": 0.05}, {"accumulate": 2, "clip": 0.05}, {"precision": "bf16"}],
    ids=["plain", "clipped", "accumulated and clipped", "bf16"],
)
def test_an_accelerate_run_is_told_right_and_stays_as_it_was(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = accelerated(**options)
    with watched(monkeypatch, tmp_path) as seen:
        ran = accelerated(**options)
    assert same(ran, plain)
    told_right(seen, ran)
    clip = options.get("clip", math.inf)
    for gradients, norm in zip(seen.gradients, ran.norms, strict=True):
        assert gradients.total == pytest.approx(min(norm, clip), rel=1e-4)
    assert all(loss.function == "cross_entropy" for step in seen.steps for loss in step.losses)
    if "precision" in options:  # it casts inside the forward that it puts on the model
        assert {call.outputs[0].dtype for step in seen.steps for call in step.forwards[0].calls[:1]} == {
            torch.bfloat16
        }


# -- what a framework adds ------------------------------------------------------------------------------------------


class Adversaries(lightning.LightningModule):  # type: ignore[name-defined]
    """Two optimizers, each with a part of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 8))
        self.critic = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
        self.norms: list[float] = []
        self.recorded: list[float] = []

    def training_step(self, batch: list[Tensor], index: int) -> None:
        real = batch[0]
        for_generator, for_critic = self.optimizers()
        fake = self.generator(torch.randn(len(real), 4))
        on_real, on_fake = F.softplus(-self.critic(real)), F.softplus(self.critic(fake.detach()))
        self.improve(self.critic, for_critic, on_real.mean() + on_fake.mean())
        self.improve(self.generator, for_generator, F.softplus(-self.critic(fake)).mean())

    def improve(self, part: nn.Module, optimizer: Any, loss: Tensor) -> None:
        self.toggle_optimizer(optimizer)
        optimizer.zero_grad()
        self.manual_backward(loss)
        self.recorded.append(loss.item())
        self.norms.append(norm_of(part.parameters()))
        optimizer.step()
        self.untoggle_optimizer(optimizer)

    def configure_optimizers(self) -> Any:
        parts = (self.generator, self.critic)
        return [torch.optim.AdamW(part.parameters(), lr=1e-4, weight_decay=0.0) for part in parts], []


def fought() -> Ran:
    torch.manual_seed(0)
    model = Adversaries()
    lightning.Trainer(max_epochs=1, accelerator="cpu", **QUIET).fit(model, batches(6))
    return Ran(model.state_dict(), torch.get_rng_state(), model.norms, model.recorded)


def test_two_optimizers_under_lightning_make_one_step_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = fought()
    with watched(monkeypatch, tmp_path) as seen:
        ran = fought()
    assert same(ran, plain)
    assert seen.findings == []
    assert seen.not_seen == []
    assert [gradients.step for gradients in seen.gradients] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [gradients.total for gradients in seen.gradients] == pytest.approx(ran.norms, rel=1e-4)
    assert [gradients.loss for gradients in seen.gradients] == pytest.approx(ran.losses, rel=1e-5)
    assert {place.path for place in seen.places} == {__file__}


def test_an_evaluation_between_the_steps_of_a_trainer_is_no_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with watched(monkeypatch, tmp_path) as seen:
        config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"),
            eval_strategy="steps",
            eval_steps=1,
            max_steps=3,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        model = transformers.GPT2LMHeadModel(config)
        transformers.Trainer(
            model=model, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences(-1)
        ).train()
    assert seen.findings == []
    assert [gradients.step for gradients in seen.gradients] == [0, 1, 2]
    assert [len(step.training_forwards) for step in seen.steps] == [1, 1, 1, 0]
    assert any(not forward.training for step in seen.steps for forward in step.forwards)


def test_a_pitfall_under_a_framework_is_found_on_the_line_of_the_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Forgetful(Classifier):
        def __init__(self) -> None:
            super().__init__()
            self.forgotten = nn.Linear(8, 8)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-3, weight_decay=0.1)

    with watched(monkeypatch, tmp_path) as seen:
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", **QUIET)
        trainer.fit(Forgetful(), batches(8))
    lines = Path(__file__).read_text().splitlines()
    found = {finding.rule: lines[finding.site.line - 1].strip() for finding in seen.findings}
    assert found == {
        "TA401": "return torch.optim.Adam(self.parameters(), lr=1e-3, weight_decay=0.1)",
        "TA500": "self.forgotten = nn.Linear(8, 8)",
    }
    assert {Path(finding.site.path) for finding in seen.findings} == {Path(__file__)}
