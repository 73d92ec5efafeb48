"""Statistics of a monitor: what each is of one tensor and of several together, and which functions are known to be one."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ta_runtime.measure import moments
from ta_runtime.measure.kinds import SMALL
from ta_runtime.measure.norms import norms
from ta_runtime.measure.scalars import Readings
from ta_runtime.monitor import ModuleMonitor, statistics
from ta_runtime.monitor.recognition import recognised
from ta_runtime.monitor.statistics import PartialStatistics

NUMPY: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "std": partial(np.std, ddof=1),
    "var": partial(np.var, ddof=1),
    "norm": np.linalg.norm,
    "rms": lambda x: np.sqrt(np.mean(np.abs(x) ** 2)),
    "abs_mean": lambda x: np.mean(np.abs(x)),
    "max": np.max,
    "min": np.min,
    "abs_max": lambda x: np.max(np.abs(x)),
}


def monitored(parts: Sequence[Tensor], name: str = "*") -> dict[str, float]:
    """What a monitor makes of micro-batches, by statistic."""
    monitor = ModuleMonitor(monitor_step_fn=None)
    monitor.set_module(torch.nn.Identity())
    for one in NUMPY if name == "*" else (name,):
        monitor.add_activation_metric(one)
    monitor.begin_step(0)
    for part in parts:
        monitor.monitor_activations("x", part)
    monitor.end_step()
    return {key.rpartition("/")[2]: value for key, value in monitor.get_step_metrics().items()}


def union(parts: Sequence[Tensor]) -> Any:
    return np.concatenate([part.detach().double().flatten().numpy() for part in parts])


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("size", [(7, 5), (3, SMALL)])
def test_each_is_what_numpy_says_of_one_tensor(name: str, size: tuple[int, int]) -> None:
    x = torch.randn(size) * 3 + 1
    assert monitored([x], name)[name] == pytest.approx(NUMPY[name](union([x])), rel=1e-5)


@pytest.mark.parametrize("name", NUMPY)
def test_each_is_that_of_the_union_of_micro_batches(name: str) -> None:
    parts = [torch.randn(4) + 1, torch.randn(SMALL + 3) * 100, torch.randn(2, 3) - 50]
    assert monitored(parts, name)[name] == pytest.approx(NUMPY[name](union(parts)), rel=1e-5)


@pytest.mark.parametrize("name", NUMPY)
def test_each_is_a_function_of_a_tensor_and_of_two(name: str) -> None:
    x, y = torch.randn(5, 4), torch.randn(5, 4)
    statistic = statistics.named(name)
    assert float(statistic(x)) == pytest.approx(NUMPY[name](union([x])), rel=1e-5)
    assert float(statistic(x, y)) == pytest.approx(NUMPY[name](union([x - y])), rel=1e-5)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int8, torch.bool]
)
@pytest.mark.parametrize("size", [12, SMALL + 12])
def test_other_kinds_of_numbers_are_measured_in_single_precision_at_least(
    dtype: torch.dtype, size: int
) -> None:
    x = (torch.randn(size) * 3).to(dtype)
    for name, value in monitored([x, x]).items():
        assert value == pytest.approx(NUMPY[name](union([x, x])), rel=1e-5), name


def test_the_spread_of_what_hardly_varies_is_not_lost_in_a_large_mean() -> None:
    x = torch.randn(1000, dtype=torch.float64) * 0.1 + 1e3
    found = monitored([x.float()[:500], x.float()[500:]])
    assert found["std"] == pytest.approx(x.float().double().std().item(), rel=1e-4)


@pytest.mark.parametrize("size", [4, SMALL + 4])
def test_half_precision_does_not_overflow(size: int) -> None:
    x = torch.full((size,), 60000.0, dtype=torch.float16)
    found = monitored([x])
    assert found["mean"] == pytest.approx(60000, rel=1e-3)
    assert found["norm"] == pytest.approx(60000 * math.sqrt(size), rel=1e-3)


def test_a_nan_is_seen_in_all_of_them() -> None:
    assert all(map(math.isnan, monitored([torch.ones(3), torch.tensor([1.0, math.nan])]).values()))


def test_an_infinity_is_the_largest() -> None:
    found = monitored([torch.ones(3), torch.tensor([1.0, math.inf])])
    assert (found["max"], found["min"], found["norm"]) == (math.inf, 1.0, math.inf)


def test_one_element_has_no_spread_and_none_has_no_mean() -> None:
    assert math.isnan(monitored([torch.ones(1)])["std"])
    assert monitored([torch.ones(1), torch.zeros(1)])["std"] == pytest.approx(math.sqrt(0.5))
    assert math.isnan(monitored([torch.ones(0)])["mean"])
    assert monitored([torch.ones(0), torch.full((3,), 2.0)])["mean"] == 2.0


def test_a_sparse_tensor_has_its_zeros() -> None:
    x = torch.zeros(6, 4)
    x[2] = torch.tensor([1.0, -2.0, 3.0, 4.0])
    for name, value in monitored([x.to_sparse(1)]).items():
        assert value == pytest.approx(NUMPY[name](union([x])), rel=1e-5), name


def test_values_on_no_device_are_no_reason_to_stop() -> None:
    monitored([torch.ones(3, device="meta"), torch.ones(SMALL + 1, device="meta")])


# -- which functions are known --------------------------------------------------------------------------------


def a_function(x: Tensor) -> Tensor:
    """With a text."""
    return x.std()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x.std(), "std"),
        (lambda activations: activations.std(), "std"),
        (lambda x: x.mean(), "mean"),
        (lambda x: x.norm(), "norm"),
        (lambda x: x.max(), "max"),
        (lambda x: x.min(), "min"),
        (lambda x: x.var(), "var"),
        (lambda x: x.abs().mean(), "abs_mean"),
        (lambda x: x.abs().max(), "abs_max"),
        (lambda x: x.pow(2).mean().sqrt(), "rms"),
        (lambda x: (x**2).mean().sqrt(), "rms"),
        (lambda x: x.std().item(), "std"),
        (lambda x: x.float().std(), "std"),
        (lambda x: torch.std(x), "std"),
        (lambda x: torch.linalg.vector_norm(x), "norm"),
        (a_function, "std"),
        (torch.std, "std"),
        (torch.norm, "norm"),
        (torch.linalg.vector_norm, "norm"),
        (torch.Tensor.mean, "mean"),
        (torch.Tensor.norm, "norm"),
        (torch.max, "max"),
        (statistics.rms, "rms"),
    ],
)
def test_a_plain_function_is_known(function: Any, name: str) -> None:
    assert recognised(function) is statistics.named(name)


scale = 2.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.std(0),
        lambda x: x.std(unbiased=False),
        lambda x: x.norm(1),
        lambda x: x.norm(dim=-1),
        lambda x: x.norm(dim=-1).mean(),
        lambda x: x.mean() * 2,
        lambda x: x.mean() * scale,
        lambda x, y=1: x.mean(),
        lambda *x: x[0].mean(),
        lambda x: x.mean,
        lambda x, y: y.mean(),
        partial(torch.std, unbiased=False),
        print,
        torch.Tensor.sum,
    ],
)
def test_what_is_not_quite_the_same_is_not(function: Any) -> None:
    assert recognised(function) is None


def test_a_name_that_stands_for_something_else_is_not_taken_for_torch() -> None:
    namespace: dict[str, Any] = {"torch": np}
    exec("metric = lambda x: torch.std(x)", namespace)  # noqa: S102
    assert recognised(namespace["metric"]) is None


def test_a_function_is_never_called_to_find_out() -> None:
    calls = []

    def metric(x: Tensor) -> Tensor:
        calls.append(x)
        return x.std()

    assert recognised(metric) is None
    assert not calls


def test_the_norm_of_a_difference_is_known() -> None:
    assert recognised(lambda a, b: (a - b).norm(), 2) is statistics.norm
    assert recognised(lambda a, b: (b - a).norm(), 2) is None
    assert recognised(lambda a, b: (a - b).norm(dim=-1).mean(), 2) is None
    assert recognised(statistics.std, 2) is statistics.std


def test_a_statistic_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"'stdd'.*mean, std"):
        ModuleMonitor().add_activation_metric("stdd")


# -- large tensors on a CPU -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1 << 17) + 5, 1 << 19, (1 << 21) + 1023])
@pytest.mark.parametrize("name", ["norm", "std", "rms"])
def test_statistics_of_large_tensors_are_right_to_six_digits(name: str, size: int) -> None:
    """A CPU sums in a few sums of single precision, and is off by 1e-4 where many values are the same."""
    torch.manual_seed(0)
    tensor = torch.randn(size).relu()
    exact = statistics.named(name)
    needs = moments.ordered(set(exact.needs))
    values = (value.item() for value in moments.of_one(tensor, needs))
    part = PartialStatistics(size, **dict(zip(needs, values, strict=True)))
    assert exact.of([part]) == pytest.approx(exact.direct(tensor.double()).item(), rel=2e-6)


LARGE: dict[str, Callable[[], Tensor]] = {
    "in several blocks": lambda: torch.randn(3, 700, 1024),
    "far from zero": lambda: torch.randn(2, 512, 1024) * 0.1 + 100,
    "of another mean in each row": lambda: torch.randn(600, 1024) + 1000 * torch.arange(600).unsqueeze(1),
    "of another mean in each column": lambda: torch.randn(600, 1024) + 1000 * torch.arange(1024),
    "channels last": lambda: torch.randn(4, 64, 32, 32).relu().to(memory_format=torch.channels_last),
    "a part of another": lambda: torch.randn(300, 1100)[:, 50:1074],
    "of an odd number": lambda: torch.randn(131, 129),
    "of few columns": lambda: torch.randn(1 << 15, 1),
    "of half precision": lambda: torch.randn(100, 1024).bfloat16() + 3,
    "of whole numbers": lambda: torch.arange(1 << 16) % 1000,
    "of double precision": lambda: torch.randn(100, 1024).double() * 1e-3 + 1e5,
}


@pytest.mark.parametrize("kind", LARGE)
def test_mean_and_standard_deviation_of_a_large_tensor_are_those_in_double_precision(kind: str) -> None:
    torch.manual_seed(0)
    tensor = LARGE[kind]()
    for parts in ([tensor], [tensor, torch.randn(5) * 100, tensor]):
        for name in ("mean", "std"):
            exact = NUMPY[name](union(parts))
            assert monitored(parts, name)[name] == pytest.approx(exact, rel=5e-6, abs=1e-6), name


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_value_that_is_not_finite_is_seen_in_a_large_tensor(value: float) -> None:
    tensor = torch.randn(1200, 1024)
    tensor[1100, 7] = value
    assert monitored([tensor], "mean")["mean"] == pytest.approx(value, nan_ok=True)
    assert math.isnan(monitored([tensor], "std")["std"])


def test_a_large_tensor_of_one_value_does_not_spread() -> None:
    """What is left is the error of the sums."""
    third = torch.full((1 << 22,), 1 / 3)
    assert monitored([third], "mean")["mean"] == pytest.approx(1 / 3, rel=5e-6)
    assert monitored([third], "std")["std"] < 1e-5 / 3


@pytest.mark.parametrize("order", [2.0, 1.0, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_norms_of_large_tensors_are_those_in_double_precision(order: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    large = torch.randn(1100, 1001).relu().to(dtype)
    tensors = [large, torch.ones(3, dtype=dtype), large.T, large[:, :900], large.view(11, 100, 1001)[:, ::2]]
    expected = [torch.linalg.vector_norm(one.double(), order).item() for one in tensors]
    assert [norm.item() for norm in norms(tensors, order)] == pytest.approx(expected, rel=1e-6)
    collected: list[float] = []
    readings = Readings()
    readings.norms(tensors, collected.extend, order)
    readings.deliver()
    assert collected == pytest.approx(expected, rel=1e-6)
