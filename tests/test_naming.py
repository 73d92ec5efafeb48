"""One tensor has one name, whatever is wrapped around its model: in the monitor, in snapshots, in traces and in findings."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import HashStore
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DataParallel, DistributedDataParallel

from ta_runtime.monitor import ModuleMonitor
from ta_runtime.naming import Names, inside, stripped, stripped_key
from ta_runtime.runs import Run
from ta_runtime.snapshot import Snapshots
from ta_runtime.trace.event import Event
from ta_runtime.trace.tracer import Tracer

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _group() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()
    torch.compiler.reset()


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2)))


def checkpointed() -> nn.Module:
    first, second = plain().children()
    return nn.Sequential(first, checkpoint_wrapper(second))


def sharded() -> nn.Module:
    model = plain()
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    return model


def compiled(model: nn.Module) -> nn.Module:
    optimized: nn.Module = torch.compile(model, backend="eager")  # type: ignore[assignment]
    return optimized


KINDS: dict[str, Callable[[], nn.Module]] = {
    "plain": plain,
    "parallel": lambda: DistributedDataParallel(plain()),
    "data parallel": lambda: DataParallel(plain()),
    "sharded": sharded,
    "checkpointed": checkpointed,
    "compiled": lambda: compiled(plain()),
    "compiled parallel": lambda: compiled(DistributedDataParallel(plain())),
    "parallel checkpointed": lambda: DistributedDataParallel(checkpointed()),
}
PARAMETERS = {"0.weight", "0.bias", "1.1.weight", "1.1.bias"}
MODULES = {"", "0", "1", "1.0", "1.1"}

by_kind = pytest.mark.parametrize("kind", KINDS)


def train(model: nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()


@by_kind
def test_a_path_is_stripped_of_wrappers(kind: str) -> None:
    model = KINDS[kind]()
    assert {stripped(model, name) for name, _ in model.named_parameters()} == PARAMETERS
    assert {stripped(model, name) for name, _ in model.named_modules()} == MODULES
    assert type(inside(model)).__name__.removeprefix("FSDP") == "Sequential"
    names = Names()
    names.add(model)
    assert set(names.of_parameters(model.parameters()).values()) == PARAMETERS


@by_kind
def test_a_key_of_a_saved_state_is_stripped_of_them(kind: str) -> None:
    assert {stripped_key(key) for key in KINDS[kind]().state_dict()} == PARAMETERS


def test_a_layer_that_is_called_module_keeps_its_name() -> None:
    model = nn.ModuleDict({"module": plain(), "other": nn.ModuleDict({"module": plain()})})
    assert stripped(model, "module.0.weight") == "module.0.weight"
    assert stripped(DistributedDataParallel(model), "module.other.module.0") == "other.module.0"


@by_kind
def test_the_monitor_names_them_as_of_the_plain_model(kind: str) -> None:
    model = KINDS[kind]()
    monitor = ModuleMonitor(monitor_step_fn=None, compiled="eager")
    monitor.add_parameter_metric("norm", lambda tensor: tensor.norm())
    monitor.add_gradient_metric("norm", lambda tensor: tensor.norm())
    monitor.add_activation_metric("sum", lambda tensor: tensor.sum())
    monitor.set_module(model)
    monitor.begin_step(0)
    model(torch.ones(2, 4)).sum().backward()
    monitor.monitor_gradients()
    monitor.monitor_parameters()
    monitor.end_step()
    [numbers] = monitor.get_all_metrics().values()
    assert {key.split("/")[1] for key in numbers if key.startswith("gradient/")} == PARAMETERS
    assert {key.split("/")[1] for key in numbers if key.startswith("parameter/")} == PARAMETERS
    heard = {key.split("/")[1] for key in numbers if key.startswith("activation/")}
    assert heard == {"[root module]"} | MODULES - {""}


@by_kind
def test_snapshots_and_traces_name_them_as_of_the_plain_model(kind: str, tmp_path: Path) -> None:
    model = KINDS[kind]()
    events: list[Event] = []
    with Tracer(events.append), Snapshots(tmp_path / "run", model, schedule="first 1"):
        train(model)
    rows = Run(str(tmp_path / "run")).records.to_pylist()
    for of in ("parameter", "gradient"):
        assert {
            row["name"].partition(" [")[0] for row in rows if row["kind"] == of
        } == PARAMETERS  # a shard says of what
    assert {event.subject for event in events if event.kind == "parameter"} <= PARAMETERS
    layers = {event.subject for event in events if event.kind == "module"}
    assert layers <= MODULES
    assert layers == MODULES or "compiled" in kind
