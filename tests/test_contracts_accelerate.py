"""What Accelerate and Fabric do to the programs of the rules about them: the bad form misbehaves, the good one does not.

Checked with Accelerate 1.15 and Lightning 2.6. What needs several processes is run once, by two of them with gloo.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from commands import pair
from torch import nn

accelerate = pytest.importorskip("accelerate")
fabric = pytest.importorskip("lightning.fabric")

pytestmark = pytest.mark.filterwarnings("ignore")


def line() -> nn.Linear:
    """A model of one weight, 1."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    return model


def fresh_state() -> None:
    """Accelerate keeps its state for the whole process."""
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    fresh_state()


class TestOneProcess:
    def steps(self, **options: Any) -> int:
        """The steps that four batches make under `accumulate`."""
        accelerator = accelerate.Accelerator(cpu=True, **options)
        model = line()
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        weights = set()
        for _ in range(4):
            with accelerator.accumulate(model):
                accelerator.backward(model(torch.ones(1, 1)).sum())
                optimizer.step()
                optimizer.zero_grad()
            weights.add(model.weight.item())
        return len(weights - {1.0})

    def test_nothing_is_accumulated_without_the_number(self) -> None:  # TA664
        assert self.steps() == 4
        fresh_state()
        assert self.steps(gradient_accumulation_steps=4) == 1

    def test_a_plain_backward_is_not_divided(self) -> None:  # TA650
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
        model = accelerator.prepare(line())
        model(torch.ones(1, 1)).sum().backward()
        plain, model.weight.grad = model.weight.grad, None
        accelerator.backward(model(torch.ones(1, 1)).sum())
        assert model.weight.grad is not None
        assert plain is not None
        assert plain.item() == 4 * model.weight.grad.item()

    def test_a_bare_optimizer_steps_in_each_micro_batch(self) -> None:  # TA650, TA663
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
        model = line()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = accelerator.prepare(model, bare)
        for step, steps in ((optimizer.step, False), (bare.step, True)):
            before = model.weight.item()
            with accelerator.accumulate(model):
                accelerator.backward(model(torch.ones(1, 1)).sum())
                step()
            assert (model.weight.item() != before) is steps

    def test_fabric_lets_a_plain_backward_pass_in_full_precision(self) -> None:  # TA650
        bare = line()
        model, _ = fabric.Fabric(accelerator="cpu", devices=1).setup(
            bare, torch.optim.SGD(bare.parameters(), lr=0.1)
        )
        model(torch.ones(1, 1)).sum().backward()
        assert bare.weight.grad is not None


# -- two processes --------------------------------------------------------------------------------------------

SCRIPT = """\
import json
import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
rank, told = accelerator.process_index, {}


def data(count):
    return TensorDataset(torch.arange(float(count)).unsqueeze(1))


def trained(name, wrap):
    torch.manual_seed(0)
    bare = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(bare.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(bare, optimizer, DataLoader(data(8), batch_size=2))
    model = model if wrap else bare
    for (x,) in loader:
        accelerator.backward(model(x).mean())
        optimizer.step()
        optimizer.zero_grad()
    told[name] = [weight.item() for weight in accelerator.gather(bare.weight.detach().flatten())]


trained("taken", True)
trained("dropped", False)


def reductions(name, named):
    reduced = []

    def counted(state, bucket):
        reduced.append(state)
        return allreduce_hook(None, bucket)

    torch.manual_seed(0)
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    weight = other.weight
    optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.01)
    one, other, optimizer, loader = accelerator.prepare(one, other, optimizer, DataLoader(data(16), batch_size=2))
    other.register_comm_hook(None, counted)
    for (x,) in loader:
        with accelerator.accumulate(*named(one, other)):
            accelerator.backward(other(one(x)).square().mean())
            optimizer.step()
            optimizer.zero_grad()
    told[name] = [len(reduced), weight.item()]


reductions("both", lambda one, other: (one, other))
reductions("one", lambda one, other: (one,))
reductions("list", lambda one, other: ([one, other],))

loader = accelerator.prepare(DataLoader(data(10), batch_size=3))
batches = [batch for (batch,) in loader]
told["gather"] = told["for metrics"] = 0
means = []
for (x,) in loader:
    told["gather"] += len(accelerator.gather(x))
    told["for metrics"] += len(accelerator.gather_for_metrics(x))
    means.append(accelerator.gather_for_metrics(x.mean()))
told["mean of means"] = torch.cat(means).mean().item()

optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=8)
optimizer, schedule = accelerator.prepare(optimizer, schedule)
rates = []
for _ in range(8):
    optimizer.step()
    schedule.step()
    rates.append(optimizer.param_groups[0]["lr"])
told["steps at a rate of 0"] = sum(rate < 1e-9 for rate in rates)

sent = []
send = torch.distributed._broadcast_coalesced


def counted(*given):
    sent.append(given)
    return send(*given)


torch.distributed._broadcast_coalesced = counted
for name, norm in (("with", nn.BatchNorm1d(2)), ("without", nn.LayerNorm(2))):
    wrapped = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(1, 2), norm)).eval()
    sent.clear()
    with torch.no_grad():
        wrapped(torch.ones(3, 1))
    told[f"buffers sent {name} a BatchNorm"] = len(sent)
torch.distributed._broadcast_coalesced = send

if rank == 0:
    open(sys.argv[1], "w").write(json.dumps(told))
accelerator.end_training()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("pair")
    (folder / "train.py").write_text(SCRIPT)
    ended = pair(folder, "train.py", "told.json", timeout=120)
    path = folder / "told.json"
    assert path.exists(), "\n".join(ran.stderr[-2000:] for ran in ended)
    found: dict[str, Any] = json.loads(Path(path).read_text())
    return found


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
class TestTwoProcesses:
    def test_the_bare_model_drifts_apart(self, told: dict[str, Any]) -> None:  # TA663
        assert told["taken"][0] == told["taken"][1]
        assert told["dropped"][0] != told["dropped"][1]

    def test_a_model_that_is_not_named_reduces_in_each_micro_batch(
        self, told: dict[str, Any]
    ) -> None:  # TA665
        assert told["both"][0] == 2
        assert told["one"][0] == told["list"][0] == 4
        assert told["both"][1] == pytest.approx(told["one"][1]) == pytest.approx(told["list"][1])

    def test_a_plain_gather_keeps_the_samples_that_fill_the_last_batch(
        self, told: dict[str, Any]
    ) -> None:  # TA661
        assert told["gather"] == 12
        assert told["for metrics"] == 10
        assert told["mean of means"] != pytest.approx(4.5)

    def test_a_prepared_schedule_steps_once_for_each_process(self, told: dict[str, Any]) -> None:  # TA662
        assert told["steps at a rate of 0"] == 5  # of 8, the fourth of them and all that follow

    def test_a_forward_pass_with_buffers_is_a_collective(self, told: dict[str, Any]) -> None:  # TA807
        assert told["buffers sent with a BatchNorm"] == 1
        assert told["buffers sent without a BatchNorm"] == 0
