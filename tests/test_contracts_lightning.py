"""What the rules about Lightning say of it, seen in the framework itself."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import lightning
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

INPUTS = torch.arange(32.0).reshape(8, 4) / 32
TARGETS = INPUTS.sum(1, keepdim=True)


class Net(lightning.LightningModule):
    optimizers: Callable[..., Any]
    lr_schedulers: Callable[..., Any]
    f1: Any

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 1)
        self.auxiliary = nn.Linear(4, 1)

    def loss(self, batch: Any) -> torch.Tensor:
        return F.mse_loss(self.layer(batch[0]), batch[1])

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(TensorDataset(INPUTS, TARGETS), batch_size=4)


class Manual(Net):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


class Validated(Net):
    def val_dataloader(self) -> DataLoader[Any]:
        return self.train_dataloader()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.loss(batch)


def fitted(module: Any, epochs: int = 2, **settings: Any) -> Any:
    """A module after a short training."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=epochs, accelerator="cpu", **(dict.fromkeys(quiet, False) | settings)
        )
        trainer.fit(module)
    return module


def with_methods(base: type, **methods: Any) -> Any:
    return type("Changed", (base,), methods)()


def go_back(loss: torch.Tensor, **how: Any) -> None:
    loss.backward(**how)  # type: ignore[no-untyped-call]


def trained_by(step: Callable[..., Any], base: type = Net) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights of the layer and of the auxiliary one after a training with this `training_step`."""
    module = fitted(with_methods(base, training_step=step))
    return module.layer.weight.detach(), module.auxiliary.weight.detach()


# -- TA651: backward-in-training-step -------------------------------------------------------------------------


def test_an_auxiliary_backward_trains_nothing() -> None:
    def step(self: Net, batch: Any, batch_idx: int) -> torch.Tensor:
        go_back(F.mse_loss(self.auxiliary(batch[0]), batch[1]))
        return self.loss(batch)

    assert torch.equal(trained_by(step)[1], Net().auxiliary.weight)


def test_a_backward_that_keeps_the_graph_is_for_nothing() -> None:
    def step(self: Net, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        go_back(loss, retain_graph=True)
        return loss

    assert torch.equal(trained_by(step)[0], fitted(Net()).layer.weight)


def test_a_step_of_its_own_repeats_the_gradient_of_the_batch_before() -> None:
    def step(self: Net, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.optimizers().step()
        return loss

    assert not torch.allclose(trained_by(step)[0], fitted(Net()).layer.weight)


def test_the_loop_of_a_script_raises_where_its_loss_is_returned() -> None:
    def step(self: Net, batch: Any, batch_idx: int) -> torch.Tensor:
        optimizer = self.optimizers()
        optimizer.zero_grad()
        loss = self.loss(batch)
        go_back(loss)
        optimizer.step()
        return loss

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        trained_by(step)


def test_manual_backward_raises_under_automatic_optimization() -> None:
    def step(self: Net, batch: Any, batch_idx: int) -> None:
        self.manual_backward(self.loss(batch))

    with pytest.raises(Exception, match="automatic_optimization"):
        trained_by(step)


def test_manual_optimization_without_a_backward_pass_trains_nothing() -> None:
    assert torch.equal(trained_by(Net.training_step, Manual)[0], Net().layer.weight)


def test_a_plain_backward_bypasses_the_scaling_of_the_loss() -> None:
    from lightning.pytorch.plugins import MixedPrecision

    def gradient_by(way: str) -> float:
        seen: list[float] = []

        def step(self: Manual, batch: Any, batch_idx: int) -> None:
            loss = self.loss(batch)
            self.manual_backward(loss) if way == "manual_backward" else go_back(loss)
            gradient = self.layer.weight.grad
            assert gradient is not None
            seen.append(gradient.norm().item())
            self.zero_grad()

        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        fitted(with_methods(Manual, training_step=step), plugins=MixedPrecision("16-mixed", "cpu", scaler))
        return seen[0]

    assert gradient_by("manual_backward") == pytest.approx(1024 * gradient_by("backward"), rel=1e-2)


# -- TA652: detached-training-step ----------------------------------------------------------------------------

CUTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "item": lambda loss: loss.item(),
    "detach": lambda loss: loss.detach(),
    "data": lambda loss: loss.data,
    "float": lambda loss: float(loss.detach()),
    "an item in a dictionary": lambda loss: {"loss": loss.item()},
    "a detached one in a dictionary": lambda loss: {"loss": loss.detach()},
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_loss_without_graph_raises(cut: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(Exception, match=r"must return a Tensor|does not require grad|no attribute 'detach'"):
        trained_by(lambda self, batch, batch_idx: cut(self.loss(batch)))


def test_a_loss_made_anew_is_silent_and_trains_nothing() -> None:
    def step(self: Net, batch: Any, batch_idx: int) -> torch.Tensor:
        return torch.tensor(self.loss(batch).item(), requires_grad=True)

    assert torch.equal(trained_by(step)[0], Net().layer.weight)


# -- TA659: epoch-scheduler-of-steps, TA666: scheduler-stepped-beside-engine ----------------------------------


def steps_of_schedule(configuration: dict[str, Any], by_hand: bool = False) -> int:
    """How often a schedule is stepped in two epochs of two batches."""
    made: list[Any] = []

    def configure_optimizers(self: Net) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        made.append(torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100))
        return [optimizer], [{"scheduler": made[0]} | configuration]

    def on_train_batch_end(self: Net, *_: Any) -> None:
        if by_hand:
            self.lr_schedulers().step()

    fitted(
        with_methods(Net, configure_optimizers=configure_optimizers, on_train_batch_end=on_train_batch_end)
    )
    return int(made[0].last_epoch)


def test_a_schedule_is_stepped_once_per_epoch_unless_its_interval_is_a_step() -> None:
    assert steps_of_schedule({}) == 2
    assert steps_of_schedule({"interval": "step"}) == 4


def test_a_step_by_hand_comes_on_top() -> None:
    assert steps_of_schedule({"interval": "step"}, by_hand=True) == 8
    assert steps_of_schedule({}, by_hand=True) == 6


# -- TA674: removed-framework-hook ----------------------------------------------------------------------------

SILENT = (
    "on_batch_end on_batch_start on_epoch_end on_epoch_start on_pretrain_routine_end on_pretrain_routine_start "
    "test_step_end training_step_end validation_step_end"
).split()


def test_hooks_of_lightning_1_are_never_called() -> None:
    called: list[str] = []

    def recorder(name: str) -> Callable[..., None]:
        return lambda *_: called.append(name)

    known = {name: recorder(name) for name in ("on_train_epoch_end", "on_validation_epoch_end")}
    hooks = {name: recorder(name) for name in SILENT} | known
    fitted(with_methods(Validated, **hooks), callbacks=[with_methods(lightning.Callback, **hooks)])
    assert set(called) == set(known)


@pytest.mark.parametrize("name", ["training_epoch_end", "validation_epoch_end"])
def test_hooks_that_took_all_outputs_raise(name: str) -> None:
    with pytest.raises(NotImplementedError, match=name):
        fitted(with_methods(Validated, **{name: lambda self, outputs: None}))


# -- TA660: batch-metric-logged-as-epoch ----------------------------------------------------------------------


@pytest.mark.parametrize("is_object", [False, True])
def test_an_epoch_of_a_logged_value_is_the_mean_of_its_batches(is_object: bool) -> None:
    torchmetrics = pytest.importorskip("torchmetrics")
    scores = torch.tensor([0.9, 0.8, 0.6, 0.7, 0.4, 0.3, 0.2, 0.6])
    labels = torch.tensor([1, 0, 1, 1, 0, 0, 0, 1])

    def validation_step(self: Net, batch: Any, batch_idx: int) -> None:
        value = self.f1(*batch)
        self.log("f1", self.f1 if is_object else value)

    def val_dataloader(self: Net) -> DataLoader[Any]:
        return DataLoader(TensorDataset(scores, labels), batch_size=4)

    module = with_methods(Net, validation_step=validation_step, val_dataloader=val_dataloader)
    module.f1 = torchmetrics.classification.BinaryF1Score()
    fitted(module, num_sanity_val_steps=0)
    logged = module.trainer.callback_metrics["f1"].item()
    whole = torchmetrics.functional.classification.binary_f1_score(scores, labels).item()
    assert (logged == pytest.approx(whole)) == is_object


# -- TA658: loss-divided-twice --------------------------------------------------------------------------------


def test_lightning_divides_by_the_accumulation() -> None:
    seen: list[float] = []

    def on_after_backward(self: Net) -> None:
        gradient = self.layer.weight.grad
        assert gradient is not None
        seen.append(gradient.norm().item())

    for number in (1, 2):
        hooked = with_methods(Net, on_after_backward=on_after_backward)
        fitted(hooked, accumulate_grad_batches=number, limit_train_batches=2)
    assert seen[4] == pytest.approx(seen[0] / 2)


def test_accelerate_divides_by_the_accumulation() -> None:
    from accelerate import Accelerator

    def gradient(number: int) -> torch.Tensor:
        torch.manual_seed(0)
        layer = nn.Linear(4, 1)
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=number)
        accelerator.backward(F.mse_loss(layer(INPUTS), TARGETS))
        assert layer.weight.grad is not None
        return layer.weight.grad

    torch.testing.assert_close(gradient(4), gradient(1) / 4)
