"""Which values each rank of a distributed run has for itself, and on which all agree."""

import libcst as cst
import pytest
from modules import module_of

HEAD = """
import time
import torch
import torch.distributed as dist
from elsewhere import mean_of, share
from torch.utils.data import DataLoader, DistributedSampler

def train(model, loader, rank, score):
    count, stop = 0, False
    part = DataLoader(data, sampler=DistributedSampler(data))
    whole = DataLoader(data)
    for i, (x, y) in enumerate(loader):
        loss = model(x).sub(y).square().mean()
        loss.backward()
"""


def differs(lines: str, test: str) -> bool:
    body = "".join(f"        {line}\n" for line in lines.split("; ") if line)
    module = module_of(f"{HEAD}{body}        if {test}:\n            found\n")
    tests = [node.test for node in module.tree.all(cst.If)]
    return module.rank_values.differ(tests[-1])


@pytest.mark.parametrize(
    ("lines", "test"),
    [
        ("", "loss > 1"),
        ("", "not torch.isfinite(loss.detach())"),
        ("value = loss.item() / 4", "value < 1 and i > 10"),
        ("values = []; values.append(loss.item())", "max(values) < 1"),
        ("values = {'loss': loss.item()}", "values['loss'] < 1"),
        ("if loss > 1: count += 1", "count > 3"),
        ("if rank == 0: stop = True", "stop"),
        ("now = time.perf_counter()", "now > 60"),
        ("total = 0; total += loss.item()", "total < 1"),
        ("total = sum(model(z).mean() for z in part)", "total < 1"),
        ("dist.all_reduce(score)", "loss < 1"),
    ],
)
def test_what_comes_from_a_loss_a_part_of_the_data_a_clock_or_the_rank_differs(lines: str, test: str) -> None:
    assert differs(lines, test)


@pytest.mark.parametrize(
    ("lines", "test"),
    [
        ("", "i > 10"),
        ("", "score < 1"),
        ("", "loss is None"),
        ("", "loss.shape[0] == 1"),
        ("", "mean_of(loss) < 1"),
        ("value = loss.clone(); dist.all_reduce(value)", "value < 1"),
        ("values = [None]; dist.all_gather_object(values, loss.item())", "sum(values) < 1"),
        (
            "if loss > 1: count += 1; dist.barrier(); flag = torch.tensor(count); dist.all_reduce(flag)",
            "flag > 3",
        ),
        ("if loss > 1: stop = True; stop = share(stop)", "stop"),
        ("if i > 1: count += 1", "count > 3"),
        ("total = sum(model(z).mean() for z in whole)", "total < 1"),
        ("loss = 0", "loss < 1"),
    ],
)
def test_what_all_ranks_have_or_agree_on_does_not(lines: str, test: str) -> None:
    assert not differs(lines, test)
