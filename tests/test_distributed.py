"""Two processes under DDP and FSDP2: the same numbers with and without the audit, and norms that are what they say."""

import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from commands import pair
from test_bitwise import same
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from ta_runtime.audit.audit import Audit
from ta_runtime.facts import Gradients
from ta_runtime.settings import resolve

STEPS = 3
LINE = "        self.first = nn.Linear(6, 8)  # the line of a finding"

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)  # the line of a finding
        self.module = nn.Sequential(nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.module(self.first(inputs))


def wrapped(kind: str) -> nn.Module:
    torch.manual_seed(1)
    model = Net()
    if kind == "ddp":
        return DistributedDataParallel(model)
    for layer in (model.first, model.module[2]):
        fully_shard(layer, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    return fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))  # type: ignore[return-value]


def train(model: nn.Module, collected: list[float]) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    losses = []
    for step in range(STEPS):
        for micro in range(2):
            if isinstance(model, DistributedDataParallel):
                model.require_backward_grad_sync = micro == 1
            loss = F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        collected.append(math.hypot(*(local(p.grad).norm().item() for p in model.parameters())))
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            model.eval()
            with torch.no_grad():
                losses.append(model(torch.randn(4, 6)))
            model.train()
    states = [local(p.detach()) for p in model.parameters()]
    return [states, losses, torch.get_rng_state()]


def local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    for kind in ("ddp", "fsdp2"):
        watch(kind, f"{folder}/{kind}.{rank}.pt")
    dist.destroy_process_group()


def watch(kind: str, path: str) -> None:
    plain = train(wrapped(kind), [])

    seen: list[Gradients] = []
    updates: list[Any] = []
    layers: set[tuple[str, int]] = set()
    audit = Audit(resolve(every_n_steps=1, rules="ALL", output=None, live=False))
    audit.start()
    session = audit.session

    def look(step: Any) -> None:
        seen.extend(step.gradients)
        updates.extend(update.parameter.name for update in step.updates)
        layers.update((call.layer.name, call.layer.place.line) for f in step.forwards for call in f.calls)

    session._look_closer = look
    norms: list[float] = []
    audited = train(wrapped(kind), norms)
    session.flush()
    totals = torch.tensor([gradients.total for gradients in seen])
    everywhere = [torch.zeros_like(totals) for _ in range(2)]
    dist.all_gather(everywhere, totals)
    audit.stop()
    torch.save(
        {
            "same": same(plain, audited),
            "norms": norms,
            "totals": totals.tolist(),
            "everywhere": [entry.tolist() for entry in everywhere],
            "sharded": [gradients.sharded for gradients in seen],
            "names": sorted(set(updates)),
            "layers": sorted(layers),
            "failures": [finding.message for finding in audit.findings if finding.rule == "TA000"],
        },
        path,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    ended = pair(folder, __file__, str(folder))
    assert [ran.returncode for ran in ended] == [0, 0], ended
    return folder


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_two_processes(kind: str, folder: Path) -> None:
    results = [torch.load(folder / f"{kind}.{rank}.pt") for rank in range(2)]
    line = Path(__file__).read_text(encoding="utf-8").splitlines().index(LINE) + 1
    for result in results:
        assert result["failures"] == []
        assert result["same"]
        assert result["totals"] == pytest.approx(result["norms"], rel=1e-5)
        assert result["sharded"] == [kind == "fsdp2"] * STEPS
        assert result["names"] == ["first.bias", "first.weight", "module.2.bias", "module.2.weight"]
        assert ("first", line) in result["layers"]
        assert {name for name, _ in result["layers"]} == {
            "",
            "first",
            "module",
            "module.0",
            "module.1",
            "module.2",
        }
    first, second = results[0]["everywhere"]
    assert (first == pytest.approx(second)) == (kind == "ddp")


if __name__ == "__main__":
    work(int(os.environ["RANK"]), sys.argv[1])
