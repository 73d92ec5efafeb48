"""What a monitor keeps from step to step: memory for copies of small tensors, and the order of its keys."""

import copy
import math
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ta_runtime.measure import moments
from ta_runtime.monitor import ModuleMonitor, statistics
from ta_runtime.monitor.copies import Copies
from ta_runtime.monitor.measured import Measured
from ta_runtime.monitor.statistics import STATISTICS, PartialStatistics
from ta_runtime.monitor.tally import StepMetrics
from ta_runtime.probes.work import OWN_WORK

NEEDS = ("mean",)


def step(copies: Copies[int], tensors: Iterable[Tensor]) -> dict[int, Tensor]:
    """Copy tensors, write to them, and give each copy that was kept by its number."""
    for number, tensor in enumerate(tensors):
        if not copies.add(tensor, NEEDS, number):
            assert copies.add(tensor, NEEDS, number, new=True)
        tensor.zero_()
    found: dict[Any, Any] = {}
    for taken in copies.taken():
        assert taken.needs == NEEDS
        rows = taken.stacked()
        found.update(zip(taken.owners, rows.clone(), strict=True))
        rows.zero_()  # what is measured may write to them
    copies.over()
    return found


@pytest.mark.parametrize("numbers", [[3, 3, 3, 3], [3, 3, 5, 5, 2, 7], [1, 1, 1], [2, 2, 0, 2]])
def test_copies_are_those_of_the_step_however_many_there_were_before(numbers: list[int]) -> None:
    copies: Copies[int] = Copies()
    for number in numbers:
        tensors = [torch.randn(4, 2).T if index % 2 else torch.randn(3) for index in range(number)]
        expected = [tensor.clone() for tensor in tensors]
        found = step(copies, tensors)
        assert found.keys() == set(range(number))
        assert all(torch.equal(found[index], tensor) for index, tensor in enumerate(expected))
        assert copies.count == 0


def test_memory_stays_for_shapes_that_come_again_alone() -> None:
    copies: Copies[int] = Copies()
    for length in range(1, 6):
        step(copies, [torch.randn(8), torch.randn(length, 2)])
        lasting = [rows for rows in copies._kinds.values() if rows.views]
        assert [rows.views[0].shape for rows in lasting] == ([] if length == 1 else [(8,)])
    step(copies, [])
    assert copies._kinds == {}


def test_what_inference_copied_training_can_write_over() -> None:
    copies: Copies[int] = Copies()
    for number in range(4):
        with torch.inference_mode(number < 2):
            step(copies, [torch.randn(2)])


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=lambda one: one.name)
def test_of_each_is_what_there_is_of_a_part_by_itself(statistic: statistics.Statistic, count: int) -> None:
    columns = {
        "mean": [0.5, -1.0], "centred": [2.0, 0.0], "norm": [3.0, 1.0],
        "magnitude": [0.7, 1.0], "highest": [1.5, math.nan], "lowest": [-2.5, math.nan],
    }  # fmt: skip
    measured = Measured([[], []], count, columns if count else {})
    expected = [
        statistic.of(
            [
                PartialStatistics(
                    count, **{name: column[row] for name, column in columns.items()} if count else {}
                )
            ]
        )
        for row in range(2)
    ]
    assert list(measured.values(statistic)) == pytest.approx(expected, rel=1e-12, nan_ok=True)


class Twice(nn.Module):
    """Calls one layer as often as it is told, after another of another shape."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.first = nn.Linear(4, 4), nn.Linear(3, 4)
        self.times = 1

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(self.times):
            x = self.last(x)
        return x


def test_keys_come_in_the_order_of_the_calls_and_values_stay_right_when_the_steps_differ() -> None:
    torch.manual_seed(0)
    model = Twice()
    monitor = ModuleMonitor(monitor_step_fn=None)
    monitor.set_module(model)
    monitor.add_activation_metric("mean")
    monitor.add_activation_metric("std")
    seen: dict[str, list[Tensor]] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(
            lambda module, args, output, name=name: seen.setdefault(name or "[root module]", []).append(
                output
            )
        )
    for number, (times, rows) in enumerate([(1, 2), (1, 2), (1, 2), (2, 2), (1, 2), (1, 5), (3, 1), (1, 2)]):
        seen.clear()
        model.times = times
        monitor.begin_step(number)
        model(torch.randn(rows, 3))
        monitor.end_step()
        values = monitor.get_step_metrics()
        assert list(values) == [f"activation/{name}/{what}" for name in ("first", "last", "[root module]")
                                for what in ("mean", "std")]  # fmt: skip
        for name, outputs in seen.items():
            union = torch.cat([output.flatten() for output in outputs]).detach().double()
            assert values[f"activation/{name}/mean"] == pytest.approx(union.mean().item(), abs=1e-6)
            assert values[f"activation/{name}/std"] == pytest.approx(union.std().item(), abs=1e-6)


def monitored(model: nn.Module, *metrics: str, regex: str = ".*") -> ModuleMonitor:
    monitor = ModuleMonitor(monitor_step_fn=None)
    monitor.set_module(model)
    for metric in metrics:
        monitor.add_activation_metric(metric, None, regex)
    return monitor


def stepped(monitor: ModuleMonitor, number: int, run: Callable[[], object]) -> dict[str, float]:
    monitor.begin_step(number)
    run()
    monitor.end_step()
    return monitor.get_step_metrics()


class Pair(nn.Module):
    """Two layers without state, for outputs that are known."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.ReLU(), nn.ReLU()


def test_two_threads_that_run_the_model_at_once_do_not_mix_their_numbers() -> None:
    model = Pair()
    monitor = monitored(model, "min", "max", regex="a|b")

    def calls(layer: nn.Module, value: float) -> None:
        for _ in range(100):
            layer(torch.full((64, 64), value))

    def both() -> None:
        threads = [threading.Thread(target=calls, args=given) for given in ((model.a, 1.0), (model.b, 2.0))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for number in range(30):
        assert stepped(monitor, number, both) == {
            f"activation/{name}/{what}": value
            for name, value in (("a", 1.0), ("b", 2.0))
            for what in ("min", "max")
        }
    assert OWN_WORK.depth == 0, "else nothing that follows would be traced"


def test_outputs_of_another_precision_than_autocast_has_are_measured() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.ReLU() for _ in range(300))
            self.shared = nn.ReLU()

        def forward(self, x: Tensor) -> None:
            self.shared(self.shared(x) + 1)
            for index, layer in enumerate(self.layers):
                layer((x + index).half())

    model = Model()
    monitor = monitored(model, "mean", regex=r"shared|layers\.")
    for number in range(3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            values = stepped(monitor, number, lambda: model(torch.ones(4)))
        assert values == {
            "activation/shared/mean": 1.5,
            **{f"activation/layers.{index}/mean": index + 1 for index in range(300)},
        }


def test_a_reduction_that_fails_is_told_of_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = Pair()
    monitor = monitored(model, "mean", regex="a|b")
    in_rows = moments.in_rows

    def failing(tensors: Tensor, needs: moments.Needs) -> list[Tensor]:
        if tensors.shape[1:] == (4,) and tensors[0, 0] == 2:
            raise torch.OutOfMemoryError("no memory is left")
        return in_rows(tensors, needs)

    monkeypatch.setattr(moments, "in_rows", failing)
    for number in range(4):

        def run(value: float = float(number)) -> None:
            model.a(torch.full((4,), value))
            model.b(torch.full((8,), value))

        values = stepped(monitor, number, run)
        assert values["activation/b/mean"] == number
        assert values["activation/a/mean"] == pytest.approx(math.nan if number == 2 else number, nan_ok=True)
    assert "activation/a/mean could not be measured: OutOfMemoryError: no memory is left" in caplog.text


def test_an_expert_without_tokens_in_one_micro_batch_has_the_norm_of_the_others() -> None:
    model = Pair()
    monitor = monitored(model, "norm", "rms", regex="a")

    def run() -> None:
        model.a(torch.full((4,), 3.0))
        model.a(torch.empty(0))

    assert stepped(monitor, 0, run) == {"activation/a/norm": 6.0, "activation/a/rms": 3.0}


def test_no_more_memory_stays_than_a_step_needs() -> None:
    copies: Copies[int] = Copies()
    for often in range(12):
        step(copies, [torch.randn(1 + index % 12) for index in range(12)] + [torch.randn(often + 1)] * 50)
        assert sum(len(rows.views) for rows in copies._kinds.values()) <= 2 * 62


def test_outputs_of_ever_new_shapes_are_not_held_without_limit() -> None:
    model = Pair()
    monitor = monitored(model, "mean", regex="a")
    monitor.begin_step(0)
    for length in range(1, 1000):
        model.a(torch.ones(length))
    assert monitor._memory.copies.count < 256
    monitor.end_step()
    assert monitor.get_step_metrics() == {"activation/a/mean": 1.0}


def test_a_copy_of_a_monitor_begins_without_what_was_held() -> None:
    copies: Copies[int] = Copies()
    copies.add(torch.ones(2), NEEDS, 0, new=True)
    assert copy.deepcopy(copies).count == 0


def test_numbers_that_the_device_loses_cost_their_step_and_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Linear(2, 2)
    monitor = ModuleMonitor(monitor_step_fn=None)
    monitor.set_module(model)
    monitor.add_activation_metric("mean")
    values = StepMetrics.values
    calls = iter(range(3))

    def lost_once(tally: StepMetrics) -> dict[str, float]:
        if next(calls) == 1:
            raise RuntimeError("an error of the device, reported late")
        return values(tally)

    monkeypatch.setattr(StepMetrics, "values", lost_once)
    for number in range(3):
        monitor.begin_step(number)
        model(torch.ones(1, 2))
        monitor.end_step()
    assert sorted(monitor.get_all_metrics()) == [0, 2]
    assert "step 1: its numbers did not arrive: RuntimeError: an error of the device" in caplog.text
