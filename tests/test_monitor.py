"""`ta_runtime.monitor`: what it measures, what it leaves alone, and each defect of `torch-module-monitor` that it has not."""

import copy
import gc
import io
import json
import pickle
import re
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo
from commands import pair
from runtime import MODELS, Counted, counted, module_monitor, training
from test_bitwise import same
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ta_runtime.monitor import ModuleMonitor, MonitorMixin


def small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def watching(model: nn.Module, **options: Any) -> ModuleMonitor:
    monitor = ModuleMonitor(**{"monitor_step_fn": None, **options})
    monitor.set_module(model)
    return monitor


def step(monitor: ModuleMonitor, run: Callable[[], object], number: int = 0) -> dict[str, float]:
    """What a step gives in which this runs."""
    monitor.begin_step(number)
    run()
    monitor.end_step()
    return monitor.get_step_metrics()


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


# -- the loop of the original's README ------------------------------------------------------------------------


def trained(monitor_class: Any, monitored: Callable[[int], bool]) -> tuple[Any, dict[int, dict[str, float]]]:
    """The README's quick start, with both kinds of differences; weights, losses and random numbers, and all metrics."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Dropout(), nn.Linear(20, 2))
    monitor = monitor_class(monitor_step_fn=monitored)
    reference = copy.deepcopy(model).eval()
    monitor.set_module(model)
    monitor.set_reference_module(reference)
    monitor.add_activation_metric("mean", lambda x: x.mean())
    monitor.add_activation_metric("std", lambda x: x.std())
    monitor.add_activation_metric("l2_norm", lambda x: x.norm(dim=-1).mean())
    monitor.add_activation_metric("first", lambda x: x.norm(), metric_regex=r"0|\[root")
    monitor.add_parameter_metric("norm", lambda x: x.norm())
    monitor.add_gradient_metric("norm", lambda x: x.norm())
    monitor.add_activation_difference_metric("l2", lambda a, b: (a - b).norm(dim=-1).mean())
    monitor.add_parameter_difference_metric("l2", lambda a, b: (a - b).norm())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for number in range(4):
        inputs, targets = torch.randn(5, 10), torch.randint(0, 2, (5,))
        monitor.begin_step(number)
        with torch.no_grad():
            reference(inputs)
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        monitor.monitor_parameters()
        monitor.monitor_gradients(before_clip=True)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        monitor.monitor_gradients()
        optimizer.step()
        optimizer.zero_grad()
        monitor.end_step()
        losses.append(loss.detach())
    return [model.state_dict(), losses, torch.get_rng_state()], monitor.get_all_metrics()


def test_it_measures_what_torch_module_monitor_does_where_that_is_right() -> None:
    ours = trained(ModuleMonitor, lambda number: number % 2 == 0)[1]
    peer = trained(pytest.importorskip("torch_module_monitor").ModuleMonitor, lambda number: number % 2 == 0)[
        1
    ]
    assert ours.keys() == peer.keys() == {0, 2}
    for number, metrics in peer.items():
        assert ours[number].keys() == metrics.keys()
        assert ours[number] == pytest.approx(metrics, rel=1e-5, abs=1e-7)


def test_weights_losses_and_random_numbers_are_those_of_a_run_without() -> None:
    watched, metrics = trained(ModuleMonitor, lambda number: True)
    plain, nothing = trained(ModuleMonitor, lambda number: False)
    assert len(metrics) == 4
    assert not nothing
    assert same(watched, plain)


def test_the_quick_start_of_the_originals_readme_runs_as_it_stands(tmp_path: Path) -> None:
    logged: list[dict[str, float]] = []
    code = QUICK_START.replace("torch_module_monitor", "ta_runtime.monitor")
    batches = [(torch.randn(4, 10), torch.randint(0, 2, (4,))) for _ in range(11)]
    wandb = type("wandb", (), {"log": staticmethod(logged.append)})
    exec(code, {"dataloader": batches, "criterion": nn.functional.cross_entropy, "wandb": wandb})  # noqa: S102
    assert len(logged) == 2
    assert {
        "activation/0/mean",
        "activation/[root module]/std",
        "parameter/2.bias/norm",
        "gradient/0.weight/norm",
    } <= (logged[0].keys())


QUICK_START = """
import torch
import torch.nn as nn
from torch_module_monitor import ModuleMonitor

model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2))
monitor = ModuleMonitor(monitor_step_fn=lambda step: step % 10 == 0)
monitor.set_module(model)
monitor.add_activation_metric("mean", lambda x: x.mean())
monitor.add_activation_metric("std", lambda x: x.std())
monitor.add_parameter_metric("norm", lambda x: x.norm())
monitor.add_gradient_metric("norm", lambda x: x.norm())
optimizer = torch.optim.Adam(model.parameters())
for step, (inputs, targets) in enumerate(dataloader):
    monitor.begin_step(step)
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    loss.backward()
    monitor.monitor_parameters()
    monitor.monitor_gradients()
    optimizer.step()
    optimizer.zero_grad()
    monitor.end_step()
    if monitor.is_step_monitored(step):
        metrics = monitor.get_step_metrics()
        wandb.log(metrics)
"""


# -- defects of the original: micro-batches -------------------------------------------------------------------


def of_micro_batches(name: str, function: Any, aggregate: Any = None) -> dict[str, float]:
    monitor = watching(nn.Identity())
    monitor.add_activation_metric(name, function, metric_aggregation_fn=aggregate)
    torch.manual_seed(0)

    def run() -> None:
        for scale in (1.0, 100.0):
            assert monitor.module is not None
            monitor.module(torch.randn(50) * scale)
            monitor.after_micro_batch()

    return step(monitor, run)


def union() -> Tensor:
    torch.manual_seed(0)
    return torch.cat([torch.randn(50) * scale for scale in (1.0, 100.0)])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("std", lambda x: x.std()),
        ("max", lambda x: x.max()),
        ("min", lambda x: x.min()),
        ("norm", lambda x: x.norm()),
        ("var", torch.var),
    ],
)
def test_std_max_and_min_over_micro_batches_are_not_means_of_parts(name: str, function: Any) -> None:
    value = of_micro_batches(name, function)[f"activation/[root module]/{name}"]
    assert value == pytest.approx(function(union()).item(), rel=1e-5)


def test_a_torch_min_as_aggregation_leaves_a_number() -> None:
    metrics = of_micro_batches("min", lambda x: x.min(), torch.min)
    assert type(metrics["activation/[root module]/min"]) is float
    assert metrics["activation/[root module]/min"] == pytest.approx(union().min().item())


def test_an_aggregation_gets_all_results_of_a_step_as_one_tensor() -> None:
    shapes = []

    def aggregate(results: Tensor) -> dict[str, Tensor]:
        shapes.append(tuple(results.shape))
        return {"": results.mean(), "[std]": results.std()}

    metrics = of_micro_batches("size", lambda x: x.abs(), aggregate)
    assert shapes == [(100,)]
    assert metrics["activation/[root module]/size"] == pytest.approx(union().abs().mean().item())
    assert metrics["activation/[root module]/size[std]"] == pytest.approx(union().abs().std().item())


def test_other_results_are_put_together_as_the_mean_of_their_elements() -> None:
    metrics = of_micro_batches("root", lambda x: x.abs().sqrt())
    assert metrics["activation/[root module]/root"] == pytest.approx(union().abs().sqrt().mean().item())


def test_a_dict_of_a_metric_has_its_keys_put_behind() -> None:
    metrics = of_micro_batches("q", lambda x: {"[low]": x.quantile(0.1), ".high": float(x.quantile(0.9))})
    assert metrics.keys() == {"activation/[root module]/q[low]", "activation/[root module]/q.high"}


@pytest.mark.parametrize("result", [1.5, 1, True, np.float32(1.5), torch.tensor(1.5), torch.ones(3)])
def test_an_activation_metric_may_return_a_float(result: Any) -> None:
    assert of_micro_batches("x", lambda x: result)["activation/[root module]/x"] in (1.0, 1.5)


# -- defects of the original: references ----------------------------------------------------------------------


def compared(run: Callable[[ModuleMonitor, nn.Module, Tensor], object], **options: Any) -> dict[str, float]:
    torch.manual_seed(0)
    model, reference = small(), small()
    monitor = watching(model, **options)
    monitor.set_reference_module(reference)
    monitor.add_activation_difference_metric("l2", lambda a, b: (a - b).norm(dim=-1).mean())
    monitor.add_activation_difference_metric("norm")
    monitor.add_parameter_difference_metric("norm")
    inputs = torch.randn(3, 6)

    def both() -> None:
        run(monitor, reference, inputs)
        model(inputs)
        monitor.monitor_parameters()

    metrics = step(monitor, both)
    difference = model(inputs) - reference(inputs)
    if metrics.keys() - {key for key in metrics if key.startswith("parameter")}:
        assert metrics["activation_difference/[root module]/l2"] == pytest.approx(
            difference.norm(dim=-1).mean().item()
        )
        assert metrics["activation_difference/2/norm"] == pytest.approx(difference.norm().item())
    assert metrics["parameter_difference/0.weight/norm"] == pytest.approx(
        (model[0].weight - reference.get_parameter("0.weight")).norm().item()
    )
    return metrics


def by_no_monitor(monitor: ModuleMonitor, reference: nn.Module, inputs: Tensor) -> None:
    with monitor.no_monitor():
        reference(inputs)


def by_no_grad(monitor: ModuleMonitor, reference: nn.Module, inputs: Tensor) -> None:
    with torch.no_grad():
        reference(inputs)


def by_run_reference(monitor: ModuleMonitor, reference: nn.Module, inputs: Tensor) -> None:
    monitor.run_reference(inputs)


@pytest.mark.parametrize("run", [by_no_monitor, by_no_grad, by_run_reference])
@pytest.mark.parametrize("cpu_offload", [False, True])
def test_the_reference_under_no_monitor_is_not_forgotten(run: Any, cpu_offload: bool) -> None:
    assert len(compared(run, cpu_offload=cpu_offload)) == 4 * 2 + 4


def test_a_reference_that_did_not_run_is_told_and_not_compared(caplog: pytest.LogCaptureFixture) -> None:
    metrics = compared(lambda *_: None)
    assert {key.partition("/")[0] for key in metrics} == {"parameter_difference"}
    assert "run it on the same input before the model" in caplog.text


def test_a_reference_copied_after_set_module_does_not_log_as_the_model() -> None:
    model = small()
    monitor = watching(model)
    monitor.add_activation_metric("mean")
    inputs = torch.randn(3, 6)
    monitor.begin_step(0)
    reference = copy.deepcopy(model)  # with the hooks of a step that is on
    monitor.set_reference_module(reference)
    reference(inputs + 100)
    model(inputs)
    monitor.end_step()
    assert monitor.get_step_metrics()["activation/[root module]/mean"] == pytest.approx(
        model(inputs).mean().item()
    )


def test_a_reference_of_other_modules_is_refused() -> None:
    monitor = watching(small())
    with pytest.raises(ValueError, match=r"'3' is in one of them alone"):
        monitor.set_reference_module(nn.Sequential(*small(), nn.ReLU()))


def test_what_works_in_place_after_a_module_does_not_change_what_was_measured() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
    monitor = watching(model)
    monitor.add_activation_metric("min")
    monitor.add_activation_metric("lowest", lambda x: x.amin(dim=-1).min())
    monitor.set_reference_module(copy.deepcopy(model))
    monitor.add_activation_difference_metric("max")
    inputs = torch.randn(9, 4)

    def run() -> None:
        monitor.run_reference(inputs)
        model(inputs)

    metrics = step(monitor, run)
    assert metrics["activation/0/min"] == metrics["activation/0/lowest"] < 0
    assert metrics["activation/1/min"] == 0
    assert metrics["activation_difference/0/max"] == 0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x)
        return result


def test_running_the_reference_leaves_its_buffers_and_the_random_numbers_alone() -> None:
    model = Net()
    reference = copy.deepcopy(model)
    monitor = watching(model)
    monitor.set_reference_module(reference)
    monitor.add_activation_difference_metric("norm")
    before, numbers = copy.deepcopy(reference.state_dict()), torch.get_rng_state()
    inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    monitor.begin_step(0)
    result = monitor.run_reference(x=inputs)
    assert same(reference.state_dict(), before)
    assert torch.equal(torch.get_rng_state(), numbers)
    assert not result.requires_grad
    model(inputs)
    monitor.end_step()
    assert set(monitor.get_step_metrics().values()) == {0.0}  # it dropped the same


# -- defects of the original: what modules put out ------------------------------------------------------------


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(self.layer(x) + 10)
        return result


def test_a_module_called_twice_counts_as_two_micro_batches() -> None:
    torch.manual_seed(0)
    model, reference = Twice(), Twice()
    monitor = watching(model)
    monitor.set_reference_module(reference)
    monitor.add_activation_metric("std")
    monitor.add_activation_difference_metric("norm")
    inputs = torch.randn(5, 3)

    def run() -> None:
        monitor.run_reference(inputs)
        model(inputs)

    metrics = step(monitor, run)
    calls = [torch.cat([one.layer(inputs), one(inputs)]) for one in (model, reference)]
    assert metrics["activation/layer/std"] == pytest.approx(calls[0].std().item())
    assert metrics["activation_difference/layer/norm"] == pytest.approx((calls[0] - calls[1]).norm().item())


class Many(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 1)})

    def forward(self, x: Tensor, *, scale: float) -> dict[str, Any]:
        hidden, _ = self.rnn(input=x)
        return {"scores": self.heads["a"](input=hidden) * scale, "hidden": [hidden], "name": "many"}


def test_tuples_dicts_and_keyword_calls_are_measured() -> None:
    monitor = watching(Many())
    monitor.add_activation_metric("std")
    monitor.add_activation_metric("width", lambda x: float(x.shape[-1]), metric_regex="rnn$")
    metrics = step(monitor, lambda: monitor.module(torch.randn(2, 5, 3), scale=2.0))
    names = {key.split("/")[1] for key in metrics}
    assert names == {
        "rnn[0]", "rnn[1.0]", "rnn[1.1]", "heads.a", "[root module][scores]", "[root module][hidden.0]",
    }  # fmt: skip
    assert metrics["activation/rnn[1.0]/width"] == 4


def test_a_container_that_puts_out_what_its_last_layer_did_is_measured_once() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 3)))
    monitor = watching(model)
    monitor.add_activation_metric("mean")
    inputs = torch.randn(2, 3)

    def operations() -> int:
        with Counted() as counts:
            step(monitor, lambda: model(inputs))
        return counts.operations["aten.clone.default"]

    assert operations() == 1
    assert len(monitor.get_step_metrics()) == 3
    assert len(set(monitor.get_step_metrics().values())) == 1


def test_an_identity_beside_other_layers_puts_out_what_is_measured_already() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.shortcut = nn.Linear(3, 3), nn.Identity()

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.layer(inputs)
            return found + self.shortcut(inputs)

    model = nn.Sequential(nn.Linear(3, 3), Residual())
    monitor = watching(model)
    monitor.add_activation_metric("mean")
    inputs = torch.randn(2, 3)
    with Counted() as counts:
        step(monitor, lambda: model(inputs))
    assert counts.operations["aten.clone.default"] == 3
    metrics = monitor.get_step_metrics()
    assert metrics["activation/1.shortcut/mean"] == metrics["activation/0/mean"]


def test_what_a_checkpointed_layer_computes_again_does_not_count_twice() -> None:
    layer = nn.Linear(3, 3)
    model = nn.Sequential(layer)
    monitor = watching(model)
    monitor.add_activation_metric("calls", lambda x: 1.0, metric_regex="0", metric_aggregation_fn=sum)

    def run() -> None:
        checkpoint(model, torch.ones(2, 3, requires_grad=True), use_reentrant=False).sum().backward()

    assert step(monitor, run) == {"activation/0/calls": 1.0}


# -- defects of the original: parameters, gradients and scalars -----------------------------------------------


def backward(model: nn.Module) -> None:
    model(torch.randn(3, 6)).sum().backward()


def test_gradients_without_a_metric_or_of_other_parameters_than_the_first_are_no_error() -> None:
    model = small()
    monitor = watching(model)

    def run() -> None:
        backward(model)
        monitor.monitor_gradients()

    assert step(monitor, run) == {}
    monitor.add_gradient_metric("norm", lambda x: x.norm(), metric_regex=r"2\.bias")
    assert step(monitor, run, 1) == {"gradient/2.bias/norm": pytest.approx(model[2].bias.grad.norm().item())}


def test_parameters_without_a_gradient_are_left_out() -> None:
    model = small()
    model[0].requires_grad_(False)
    monitor = watching(model)
    monitor.add_gradient_metric("max")

    def run() -> None:
        backward(model)
        monitor.monitor_gradients()

    assert step(monitor, run).keys() == {"gradient/2.weight/max", "gradient/2.bias/max"}


def test_the_gradients_of_an_embedding_may_be_sparse() -> None:
    model = nn.Embedding(50, 4, sparse=True)
    monitor = watching(model)
    for name in ("norm", "mean", "std", "max"):
        monitor.add_gradient_metric(name)

    def run() -> None:
        model(torch.tensor([1, 1, 7])).sum().backward()
        monitor.monitor_gradients()

    gradient = step(monitor, run), model.weight.grad.to_dense()
    assert gradient[0] == pytest.approx(
        {
            f"gradient/weight/{name}": getattr(gradient[1], name)().item()
            for name in ("norm", "mean", "std", "max")
        }
    )


def test_a_tied_parameter_is_measured_once_and_one_that_is_replaced_as_it_is_now() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    monitor = watching(model)
    monitor.add_parameter_metric("norm")
    step(monitor, monitor.monitor_parameters)
    model[0].weight = nn.Parameter(torch.zeros(3, 3))
    model.append(nn.Linear(3, 1))
    first, second = monitor.get_step_metrics(), step(monitor, monitor.monitor_parameters, 1)
    assert "parameter/1.weight/norm" not in first
    assert second["parameter/0.weight/norm"] == 0
    assert "parameter/2.bias/norm" in second


def test_several_scalars_can_be_logged_and_none_is_read_before_the_step_ends() -> None:
    monitor = watching(nn.Identity())

    def run() -> None:
        with Counted() as counts:
            monitor.log_scalars({"loss": torch.tensor(2.0, requires_grad=True), "rate": 0.1})
            monitor.log_scalar("loss", torch.tensor([4.0]))
            monitor.log_scalar("peak", 1, aggregation_fn=max)
            monitor.log_scalar("peak", torch.tensor(7), aggregation_fn=max)
            monitor.log_tensor("table", torch.arange(4))
        assert counts.syncs == 0

    assert step(monitor, run) == {"loss": 3.0, "rate": 0.1, "peak": 7.0, "table": 1.5}


def test_a_scalar_is_logged_by_force_in_a_step_that_is_not_monitored() -> None:
    monitor = watching(nn.Identity(), monitor_step_fn=lambda number: False)

    def run() -> None:
        monitor.log_scalar("loss", 1.0)
        monitor.log_scalars({"rate": 0.5}, force=True)

    assert step(monitor, run) == {"rate": 0.5}


@pytest.mark.parametrize(
    ("value", "error"), [("1", TypeError), (None, TypeError), (torch.ones(2), ValueError)]
)
def test_what_is_no_number_is_refused_by_its_key(value: Any, error: type[Exception]) -> None:
    monitor = watching(nn.Identity())
    monitor.begin_step(0)
    if value != "1":
        with pytest.raises(error, match="loss"):
            monitor.log_scalar("loss", value)
    else:
        monitor.log_scalar("loss", value)


def test_names_are_matched_as_they_stand_in_the_keys() -> None:
    model = torch.compile(small(), backend="eager")
    assert isinstance(model, nn.Module)
    monitor = watching(model)
    monitor.add_parameter_metric("norm", metric_regex=r"2\.")
    assert step(monitor, monitor.monitor_parameters).keys() == {
        "parameter/2.weight/norm",
        "parameter/2.bias/norm",
    }


# -- steps ----------------------------------------------------------------------------------------------------


def test_modules_of_no_metric_have_no_hook_and_after_the_step_none_has() -> None:
    model = small()
    monitor = watching(model, monitor_step_fn=lambda number: number % 2 == 0, excluded_modules_regex="2")
    monitor.add_activation_metric("mean", metric_regex=r"0|2")
    found = []
    for number in range(3):
        monitor.begin_step(number)
        found.append(hooks_of(model))
        monitor.end_step()
        found.append(hooks_of(model))
    assert found == [1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("name", MODELS)
def test_a_step_that_is_not_monitored_has_no_operation_more(name: str) -> None:
    def operations(watch: bool) -> dict[str, int]:
        watched = training(name)
        monitor = watching(watched.model, monitor_step_fn=lambda number: False)
        everything(monitor)
        with Counted() as counts:
            whole_step(monitor, watched) if watch else watched.step()
        return counts.operations

    assert operations(True) == operations(False)


def everything(monitor: ModuleMonitor) -> None:
    monitor.add_activation_metric("mean", lambda x: x.mean())
    monitor.add_activation_metric("std", lambda x: x.std())
    monitor.add_parameter_metric("norm", lambda x: x.norm())
    monitor.add_gradient_metric("norm", lambda x: x.norm())


def whole_step(monitor: ModuleMonitor, watched: Any, number: int = 0) -> None:
    monitor.begin_step(number)
    watched.backward()
    monitor.monitor_parameters()
    monitor.monitor_gradients()
    watched.optimizer.step()
    monitor.end_step()


@pytest.mark.parametrize("name", MODELS)
def test_a_monitored_step_reads_nothing_one_by_one_and_small_tensors_in_bulk(name: str) -> None:
    watched = training(name)
    watched.step()
    with Counted() as plain:
        watched.step()
    monitor = watching(watched.model)
    everything(monitor)
    whole_step(monitor, watched)
    with Counted() as counts:
        whole_step(monitor, watched, 1)
    assert counts.syncs == plain.syncs
    assert len(monitor.get_step_metrics()) > 100
    assert 3 * (counts.total - plain.total) < counted(module_monitor(training(name))).total - plain.total


def test_steps_only_go_up_and_a_step_that_never_ended_ends_with_the_next() -> None:
    monitor = watching(small())
    monitor.begin_step(3)
    monitor.log_scalar("loss", 1.0)
    monitor.begin_step(4)
    with pytest.raises(ValueError, match="step 2 comes after step 4"):
        monitor.begin_step(2)
    assert monitor.get_all_metrics() == {3: {"loss": 1.0}}


def test_a_validation_is_not_monitored() -> None:
    model = small()
    monitor = watching(model)
    monitor.add_activation_metric("rows", lambda x: float(len(x)))

    def run() -> None:
        model(torch.randn(3, 6))
        with monitor.no_monitor(), monitor.no_monitor():
            model(torch.randn(99, 6))
        assert monitor.is_monitoring()

    assert set(step(monitor, run).values()) == {3.0}


def test_without_a_module_there_is_nothing_to_monitor() -> None:
    monitor = ModuleMonitor()
    with pytest.raises(ValueError, match="set_module"):
        monitor.begin_step(0)
    with pytest.raises(ValueError, match="set_module"):
        monitor.set_reference_module(small())
    with pytest.raises(ValueError, match="set_reference_module"):
        monitor.run_reference()


def test_a_metric_that_raises_is_told_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    model = small()
    monitor = watching(model)
    monitor.add_activation_metric("bad", lambda x: x.no_such_method(), metric_regex="0")
    monitor.add_activation_metric(
        "worse", lambda x: x, metric_regex="0", metric_aggregation_fn=lambda x: x.nothing()
    )
    monitor.add_activation_metric("text", lambda x: "text", metric_regex="0")
    monitor.add_activation_metric("good", lambda x: x.mean(), metric_regex="0")
    monitor.add_parameter_metric("bad", lambda x: 1 / 0, metric_regex=r"0\.bias")
    for number in range(2):
        monitor.begin_step(number)
        backward(model)
        monitor.monitor_parameters()
        monitor.end_step()
        assert monitor.get_step_metrics().keys() == {"activation/0/good"}
    told = [re.findall(r"\w+/0\S* could", record.getMessage())[0][:-6] for record in caplog.records]
    assert sorted(told) == [
        "activation/0/bad",
        "activation/0/text",
        "activation/0/worse",
        "parameter/0.bias/bad",
    ]


# -- modules that log for themselves --------------------------------------------------------------------------


class Layer(nn.Module, MonitorMixin):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear(x)
        if self.is_monitoring:
            monitor = self.get_module_monitor()
            assert monitor is not None
            monitor.log_tensor(f"custom/{'reference' if self.is_reference_module else 'model'}", result)
        return result


def test_a_module_logs_what_it_likes_also_one_that_was_never_monitored() -> None:
    model, alone = Layer(), Layer()
    monitor = watching(nn.Sequential(model))
    reference = copy.deepcopy(monitor.module)
    monitor.set_reference_module(reference)
    inputs = torch.randn(2, 3)
    alone(inputs)
    metrics = step(monitor, lambda: (reference(inputs), model(inputs), copy.deepcopy(model)(inputs + 9)))
    expected = pytest.approx(model(inputs).mean().item())
    assert metrics == {"custom/model": expected, "custom/reference": expected}
    monitor.remove_reference_module()
    assert not monitor.has_reference_module()


# -- lifetimes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("during", [False, True])
def test_a_monitored_model_can_be_pickled_and_copied_and_the_copies_are_silent(during: bool) -> None:
    model = nn.Sequential(Layer())
    monitor = watching(model)
    monitor.add_activation_metric("rows", lambda x: float(len(x)))
    if during:
        monitor.begin_step(0)
    saved = io.BytesIO()
    torch.save(model, saved)
    saved.seek(0)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(saved, weights_only=False)]
    monitor.begin_step(1)
    for one in copies:
        one(torch.randn(7, 3))
    model(torch.randn(2, 3))
    monitor.end_step()
    assert set(monitor.get_step_metrics().values()) >= {2.0}
    assert 7.0 not in monitor.get_step_metrics().values()
    assert not hooks_of(model)


@pytest.mark.parametrize("during", [False, True])
def test_a_monitor_and_its_model_hold_one_another_in_no_circle(during: bool) -> None:
    model = nn.Sequential(Layer())
    monitor = watching(model)
    monitor.set_reference_module(copy.deepcopy(model))
    everything(monitor)
    step(monitor, lambda: model(torch.randn(2, 3)))
    if during:
        monitor.begin_step(1)
        model(torch.randn(2, 3))
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(monitor)
        del monitor
        assert gone() is None
        model(torch.randn(2, 3))
    finally:
        gc.enable()


def test_no_activation_is_kept_alive() -> None:
    model = nn.Sequential(nn.Linear(200, 200), nn.Linear(200, 200))
    monitor = watching(model)
    everything(monitor)
    outputs: list[weakref.ref[Tensor]] = []
    model[0].register_forward_hook(lambda module, args, output: outputs.append(weakref.ref(output)))
    monitor.begin_step(0)
    with torch.no_grad():
        model(torch.randn(200, 200))
    assert outputs[0]() is None


# -- compiled models ------------------------------------------------------------------------------------------


class Compiled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = small()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.body(x)
        return result


@pytest.fixture
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def by_call(model: nn.Module) -> Callable[..., Any]:
    return torch.compile(model, backend="eager")


def in_place(model: nn.Module) -> Callable[..., Any]:
    model.compile(backend="eager")
    return model


def by_function(model: nn.Module) -> Callable[..., Any]:
    return torch.compile(lambda inputs: model(inputs), backend="eager")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("way", [by_call, in_place, by_function])
@pytest.mark.parametrize("compiled", ["skip", "eager"])
def test_a_compiled_model_is_compiled_once(way: Any, compiled: Any, caplog: pytest.LogCaptureFixture) -> None:
    model = Compiled()
    run = way(model)
    monitor = watching(
        run if way is by_call else model, monitor_step_fn=lambda number: number % 2 == 1, compiled=compiled
    )
    everything(monitor)
    inputs = torch.randn(3, 6)
    for number in range(6):
        monitor.begin_step(number)
        run(inputs).sum().backward()
        monitor.monitor_parameters()
        monitor.monitor_gradients()
        monitor.end_step()
    kinds = {key.partition("/")[0] for key in monitor.get_all_metrics()[5]}
    assert kinds >= {"parameter", "gradient"}
    assert ("activation" in kinds) == (compiled == "eager")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert not torch._dynamo.utils.counters["graph_break"]
    told = [one for one in caplog.records if "the model is compiled" in one.getMessage()]
    assert len(told) == (compiled == "skip")


@pytest.mark.usefixtures("fresh")
def test_a_function_that_is_compiled_in_a_monitored_step_is_compiled_once_more_at_most() -> None:
    model = Compiled()
    run = by_function(model)
    monitor = watching(model, monitor_step_fn=lambda number: number % 2 == 0)
    everything(monitor)
    for number in range(6):
        step(monitor, lambda: run(torch.randn(3, 6)), number)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2
    assert not torch._dynamo.utils.counters["graph_break"]


# -- distributed parameters -----------------------------------------------------------------------------------

SHARDED = """
import copy, json, os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from ta_runtime.monitor import ModuleMonitor

NAMES = ("norm", "mean", "std", "max", "min")


def main(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
    model, reference = copy.deepcopy(plain), copy.deepcopy(plain)
    mesh = init_device_mesh("cpu", (2,))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.mul_(2)
    found = []
    for watched, sync in ((plain, False), (model, True), (model, False)):
        monitor = ModuleMonitor(monitor_step_fn=None, sync=sync)
        monitor.set_module(watched)
        monitor.set_reference_module(reference)
        for name in NAMES:
            monitor.add_parameter_metric(name)
            monitor.add_gradient_metric(name)
        monitor.add_parameter_metric("sum", lambda parameter: parameter.abs().sum())
        monitor.add_parameter_difference_metric("norm")
        monitor.add_parameter_difference_metric("farthest", lambda one, other: (one - other).abs().max())
        monitor.begin_step(0)
        watched(torch.ones(4, 5)).sum().backward()
        monitor.monitor_parameters()
        monitor.monitor_gradients()
        monitor.end_step()
        found.append(monitor.get_step_metrics())
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(os.environ["RANK"]), sys.argv[1])
"""


def test_of_sharded_parameters_a_rank_measures_its_part_or_with_sync_the_whole(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SHARDED)
    ended = pair(tmp_path, "script.py", str(tmp_path), timeout=120)
    assert [ran.returncode for ran in ended] == [0, 0], ended
    for rank in range(2):
        plain, synced, local = json.loads((tmp_path / f"{rank}.json").read_text())
        assert len(plain) == 4 * 13
        assert synced == pytest.approx(plain, rel=1e-5, nan_ok=True)
        assert local.keys() == plain.keys()
        assert local["parameter/0.weight/norm"] < 0.99 * plain["parameter/0.weight/norm"]
