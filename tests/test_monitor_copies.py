"""What a monitor keeps from step to step: memory for copies of small tensors, and the order of its keys."""

import math
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn

from ta_runtime.monitor import ModuleMonitor, statistics
from ta_runtime.monitor.copies import Copies
from ta_runtime.monitor.measured import Measured
from ta_runtime.monitor.statistics import STATISTICS, Part

NEEDS = ("mean",)


def step(copies: Copies[int], tensors: Iterable[Tensor]) -> dict[int, Tensor]:
    """Copy tensors, write to them, and give each copy that was kept by its number."""
    for number, tensor in enumerate(tensors):
        if not copies.add(tensor, NEEDS, number):
            assert copies.add(tensor, NEEDS, number, new=True)
        tensor.zero_()
    found = {}
    for rows, owners, needs in copies.taken():
        assert needs == NEEDS
        found.update(zip(owners, rows.clone(), strict=True))
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
            [Part(count, **{name: column[row] for name, column in columns.items()} if count else {})]
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
