"""torch-module-monitor 0.1.0 from PyPI and ours run the same scripts: the same keys, and the same values where it is right."""

import copy
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import monitor as benchmark
import pytest
import torch
import torch_module_monitor as peer
from runtime import GPT, PLAIN, Training, counted, training
from torch import Tensor, nn
from torch.nn import functional

from ta_runtime import monitor as ours

Metrics = dict[int, dict[str, float]]
Script = Callable[[Any], Metrics]


def numbers(metrics: dict[int, dict[str, Any]]) -> Metrics:
    """Tensors of one element that the peer leaves in its results are numbers."""
    return {step: {key: float(value) for key, value in found.items()} for step, found in metrics.items()}


def assert_same(script: Script, rel: float = 1e-5, but_for: str = "nothing", nan: bool = False) -> None:
    """The same steps with the same keys, and the same values but for some metric that the peer has wrong."""
    theirs, own = numbers(script(peer)), numbers(script(ours))
    assert {step: set(found) for step, found in own.items()} == {
        step: set(found) for step, found in theirs.items()
    }
    assert any(theirs.values())
    for step, found in theirs.items():
        expected = {key: value for key, value in found.items() if but_for not in key}
        got = {key: own[step][key] for key in expected}
        assert got == pytest.approx(expected, rel=rel, abs=1e-6, nan_ok=nan)


def monitor_of(package: Any, model: nn.Module, **options: Any) -> Any:
    monitor = package.ModuleMonitor(**{"monitor_step_fn": lambda step: True, **options})
    monitor.set_module(model)
    return monitor


def train(monitor: Any, watched: Training, steps: int = 2) -> Metrics:
    """The loop of the README."""
    torch.manual_seed(7)
    for step in range(steps):
        monitor.begin_step(step)
        watched.backward()
        monitor.monitor_parameters()
        monitor.monitor_gradients()
        watched.optimizer.step()
        monitor.end_step()
    return monitor.get_all_metrics()


def tiny() -> Training:
    """The GPT of the benchmark, for its names."""
    torch.manual_seed(0)
    model = GPT(words=64, width=32, length=16)
    ids = torch.randint(0, 64, (2, 17))
    return Training(model, torch.optim.AdamW(model.parameters()), ids[:, :-1], ids[:, 1:])


@pytest.mark.parametrize(
    "make", [tiny, partial(training, "cnn"), partial(training, "mlp")], ids=["gpt", "cnn", "mlp"]
)
def test_the_quick_start_of_the_readme(make: Callable[[], Training]) -> None:
    def script(package: Any) -> Metrics:
        watched = make()
        monitor = monitor_of(package, watched.model)
        monitor.add_activation_metric("mean", lambda x: x.mean())
        monitor.add_activation_metric("std", lambda x: x.std())
        monitor.add_parameter_metric("norm", lambda x: x.norm())
        monitor.add_gradient_metric("norm", lambda x: x.norm())
        return train(monitor, watched)

    assert_same(script)


def test_activations_by_regular_expressions_and_steps() -> None:
    def script(package: Any) -> Metrics:
        watched = tiny()
        monitor = monitor_of(package, watched.model, monitor_step_fn=lambda step: step % 2 == 1)
        monitor.add_activation_metric("l2_norm", lambda x: x.norm(dim=-1).mean())
        monitor.add_activation_metric("attention_mean", lambda x: x.mean(), metric_regex=r".*attention.*")
        monitor.add_activation_metric("most", lambda x: x.max(), r"norm|words", torch.max)
        monitor.add_parameter_metric("first", lambda x: x.flatten()[0], r"head|blocks\.0\.mlp")
        monitor.add_gradient_metric("mean_square", lambda x: (x * x).mean(), "words")
        return train(monitor, watched)

    assert_same(script)


def test_names_that_are_excluded_and_names_of_one_s_own() -> None:
    def script(package: Any) -> Metrics:
        watched = tiny()
        monitor = monitor_of(
            package,
            watched.model,
            excluded_modules_regex=r"model\.blocks\.[12]",
            format_module_name_fn=lambda name: f"model.{name}",
        )
        monitor.add_activation_metric("abs", lambda x: x.abs().mean(), ".*mlp")
        monitor.add_parameter_metric("abs", lambda x: x.abs().mean())
        monitor.add_gradient_metric("abs", lambda x: x.abs().mean())
        return train(monitor, watched, 1)

    assert_same(script)


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 3)
    )


def batches(count: int) -> Iterator[tuple[Tensor, Tensor]]:
    made = torch.Generator().manual_seed(3)
    for size in range(4, 4 + count):
        yield torch.randn(size, 6, generator=made), torch.randint(0, 3, (size,), generator=made)


def accumulate(monitor: Any, model: nn.Module, reference: nn.Module | None = None) -> Metrics:
    """Two steps of three micro-batches of different sizes, with clipping."""
    monitor.add_gradient_metric("mean", lambda x: x.mean())  # the peer crashes without any
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        monitor.begin_step(step)
        for inputs, targets in batches(3):
            if reference is not None:
                with torch.no_grad():
                    reference(inputs)
            functional.cross_entropy(model(inputs), targets).backward()
            monitor.after_micro_batch()
        monitor.monitor_gradients(before_clip=True)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        monitor.monitor_gradients()
        monitor.monitor_parameters()
        optimizer.step()
        optimizer.zero_grad()
        monitor.end_step()
    return monitor.get_all_metrics()


def test_micro_batches_and_gradients_before_clipping() -> None:
    def script(package: Any) -> Metrics:
        model = small()
        monitor = monitor_of(package, model)
        monitor.add_activation_metric("mean", lambda x: x.mean(dim=-1))
        monitor.add_activation_metric("largest", lambda x: x.amax(dim=-1), metric_aggregation_fn=torch.max)
        monitor.add_activation_metric("std", lambda x: x.std())  # a mean of standard deviations there
        monitor.add_gradient_metric("norm", lambda x: x.norm())
        return accumulate(monitor, model)

    assert_same(script, but_for="/std")


def test_the_reference_and_what_differs_from_it() -> None:
    def script(package: Any) -> Metrics:
        model = small()
        monitor = monitor_of(package, model)
        reference = copy.deepcopy(small())
        monitor.set_reference_module(reference)
        monitor.add_activation_difference_metric("l2_distance", lambda x, y: (x - y).norm(dim=-1))
        monitor.add_activation_difference_metric("most", lambda x, y: (x - y).abs().amax(-1), ".*", torch.max)
        monitor.add_parameter_difference_metric("l2_distance", lambda x, y: (x - y).norm())
        return accumulate(monitor, model, reference)

    assert_same(script)


def test_a_metric_of_several_figures() -> None:
    def parts(x: Tensor) -> dict[str, Tensor]:
        return {"/low": x.min(), "/high": x.max()}

    def together(results: Tensor) -> dict[str, float]:
        return {"": results.mean().item(), "/p90": results.quantile(0.9).item()}

    def script(package: Any) -> Metrics:
        model = small()
        monitor = monitor_of(package, model)
        monitor.add_activation_metric("rows", lambda x: x.sum(-1), ".*", together)
        if package is ours:  # a metric that is a dict is documented there, and crashes
            monitor.add_activation_metric("ends", parts, "0")
            found = accumulate(monitor, model)
            for values in found.values():
                assert values.pop("activation/0/ends/low") < values.pop("activation/0/ends/high")
            return found
        return accumulate(monitor, model)

    assert_same(script)


def test_figures_of_one_s_own() -> None:
    def script(package: Any) -> Metrics:
        class Layer(nn.Module, package.MonitorMixin):
            def __init__(self) -> None:
                nn.Module.__init__(self)
                package.MonitorMixin.__init__(self)
                self.linear = nn.Linear(6, 3)

            def forward(self, x: Tensor) -> Tensor:
                y = self.linear(x)
                if self.is_monitoring:
                    self.get_module_monitor().log_tensor("custom_metric/my_layer/intermediate", y.abs())
                return y

        torch.manual_seed(0)
        model = nn.Sequential(Layer())
        monitor = monitor_of(package, model, monitor_step_fn=lambda step: step == 1)
        for step in range(2):
            assert monitor.begin_step(step) == monitor.is_step_monitored(step) == (step == 1)
            for inputs, _ in batches(2):
                model(inputs)
                monitor.log_scalar("loss", len(inputs))
                monitor.log_scalar("worst", torch.tensor(float(len(inputs))), max)
                with monitor.no_monitor():
                    assert not monitor.is_monitoring()
                    model(inputs * 1000)
                    monitor.log_scalar("loss", 1000)
            monitor.log_scalar("always", step, force=True)
            monitor.end_step()
        return {step: found for step, found in monitor.get_all_metrics().items() if step == 1}

    assert_same(script)


def attention_of(package: Any, is_causal: bool, key_heads: int, masked: bool) -> type[nn.Module]:
    class Attention(nn.Module, package.MonitorMixin):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            package.MonitorMixin.__init__(self)
            self.into = nn.Linear(16, 16 + 2 * 4 * key_heads)

        def forward(self, x: Tensor) -> Tensor:
            parts = self.into(x).split([16, 4 * key_heads, 4 * key_heads], -1)
            query, key, value = (part.unflatten(-1, (-1, 4)).transpose(1, 2) for part in parts)
            options = {"is_causal": is_causal, "scale": 0.7, "enable_gqa": key_heads != 4}
            if masked:
                options["attn_mask"] = (torch.arange(12) < 7).expand(12, 12)
            output = functional.scaled_dot_product_attention(query, key, value, **options)
            if self.is_monitoring:
                package.monitor_scaled_dot_product_attention(
                    self.get_module_monitor(), module=self, query=query, key=key, value=value,
                    activation=output, **options,
                )  # fmt: skip
            return output.transpose(1, 2).flatten(2)

    return Attention


@pytest.mark.parametrize(
    ("is_causal", "key_heads", "masked"),
    [(False, 4, False), (True, 4, False), (True, 2, False), (False, 1, True)],
)
def test_attention_head_by_head(is_causal: bool, key_heads: int, masked: bool) -> None:
    def script(package: Any) -> Metrics:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 16), attention_of(package, is_causal, key_heads, masked)())
        monitor = monitor_of(package, model)
        monitor.add_activation_metric("mean", lambda x: x.mean())
        monitor.add_activation_metric("std", lambda x: x.std())
        for step in range(2):
            monitor.begin_step(step)
            model(torch.randn(3, 12, 16)).sum().backward()
            monitor.end_step()
        return monitor.get_all_metrics()

    assert_same(script, rel=1e-4)


class Tokens(nn.Module):
    """Each kind of layer that the coordinate check has formulas for, and some that it has not."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.blocks = nn.Sequential(
            nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8, bias=False)
        )
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.over_time = nn.BatchNorm1d(5)
        self.head = nn.Linear(8, 10)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        return self.head(self.over_time(self.norm(x + self.blocks(x))))


def test_the_refined_coordinate_check() -> None:
    def script(package: Any) -> Metrics:
        torch.manual_seed(0)
        model = Tokens()
        reference = copy.deepcopy(model)
        monitor = monitor_of(package, model)
        monitor.set_reference_module(reference)
        check = package.RefinedCoordinateCheck(monitor)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(3):
            ids = torch.randint(0, 10, (4, 5))
            monitor.begin_step(step)
            with torch.no_grad():
                reference(ids)
            loss = functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            check.refined_coordinate_check()
            loss.backward()
            monitor.end_step()
            optimizer.step()
            optimizer.zero_grad()
        return monitor.get_all_metrics()

    assert_same(script)


def test_a_model_that_has_diverged() -> None:
    def script(package: Any) -> Metrics:
        model = small()
        with torch.no_grad():
            model[2][0].weight[0, 0] = math.nan
            model[3].bias[0] = math.inf
        monitor = monitor_of(package, model)
        monitor.add_activation_metric("mean", lambda x: x.mean(dim=-1))
        monitor.add_parameter_metric("norm", lambda x: x.norm())
        monitor.add_parameter_metric("max", lambda x: x.max())
        return accumulate(monitor, model)

    assert_same(script, nan=True)


@pytest.mark.parametrize("make", [tiny, partial(training, "mlp")], ids=["gpt", "mlp"])
def test_a_step_costs_less_than_a_third_of_the_operations_and_waits_for_no_device(
    make: Callable[[], Training],
) -> None:
    def added(variant: str) -> tuple[int, int]:
        counts = counted(benchmark.VARIANTS[variant](make()))
        return counts.total - base.total, counts.syncs - base.syncs

    base = counted(benchmark.VARIANTS[PLAIN](make()))
    operations, syncs = added(benchmark.PEER)
    assert syncs > 100
    for variant in (benchmark.FUNCTIONS, benchmark.NAMES):
        assert added(variant)[0] < operations / 3
        assert added(variant)[1] == 0
