"""Two processes that train under data parallelism with gloo, recorded once as they should be and once for each mistake.

python ranks.py FOLDER
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from ta_runtime.snapshot import Snapshots

STEPS = 4
Stepped = Callable[[int, int, nn.Module, torch.optim.Optimizer], None]


def nothing(step: int, rank: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The training is as it should be."""


def written(step: int, rank: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One rank writes into a weight."""
    if step == 1 and rank == 1:
        model.module[0].weight.data[2, 1] += 0.25


def moment(step: int, rank: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    if step == 0 and rank == 1:
        optimizer.state[model.module[2].weight]["exp_avg"].zero_()


def train(
    folder: Path,
    model: nn.Module,
    stepped: Stepped = nothing,
    *,
    same_data: bool = False,
    synced: bool = True,
) -> None:
    rank = dist.get_rank()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(5 if same_data else rank)
    with Snapshots(folder, schedule=f"first {STEPS}"):
        for step in range(STEPS):
            inputs = torch.randn(4, 6, generator=generator)
            if isinstance(model, DistributedDataParallel):
                model.require_backward_grad_sync = synced or step != 2
            F.mse_loss(model(inputs), inputs[:, :3]).backward()
            optimizer.step()
            optimizer.zero_grad()
            stepped(step, rank, model, optimizer)


def replicated() -> nn.Module:
    return DistributedDataParallel(built())


def sharded() -> nn.Module:
    return fully_shard(built(), mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))


def built() -> nn.Module:
    torch.manual_seed(dist.get_rank())  # DDP sends rank 0's weights to the others
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def work(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    early = Snapshots(folder / "early", schedule="first 1")
    early.start()  # nothing says yet which rank this is
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    dist.barrier()
    shutil.copytree(folder / "early", folder / f"joined{rank}")
    train(folder / "healthy", replicated())
    early.stop()
    train(folder / "written", replicated(), written)
    train(folder / "moment", replicated(), moment)
    train(folder / "unreduced", replicated(), synced=False)
    train(folder / "unwrapped", built())
    train(folder / "same_data", replicated(), same_data=True)
    train(folder / "sharded", sharded())
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(work, args=(Path(sys.argv[1]).absolute(),), nprocs=2, start_method="fork")
