"""What the dry run knows of totals over batches: what each pass adds, and what they are divided by."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.batch_means import batch_means_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.batch_mean import BatchMean

_SCRIPT = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from data import Photos

loader = DataLoader(Photos(), batch_size=SIZE)
model = nn.Linear(3, 2)
total, count, seen, values = 0.0, 0, 0, []
with torch.no_grad():
    for index, (x, y) in enumerate(loader):
        output = model(x)
        loss = F.cross_entropy(output, y)
        ADD
        count += 1
        seen += len(y)
LEAVE
"""


def _mean(tmp_path: Path, add: str, leave: str, size: str = "32") -> BatchMean | None:
    path = tmp_path / "evaluate.py"
    path.write_text(_SCRIPT.replace("ADD", add).replace("LEAVE", leave).replace("SIZE", size))
    means = batch_means_of(dry_run(str(path)).events)
    assert len(means) < 2
    return means[0] if means else None


@pytest.mark.parametrize(
    ("add", "leave"),
    [
        ("total += loss.item()", "print(total / len(loader))"),
        ("total = total + loss", "print(total / count)"),
        ("total += float(loss.cpu()) * 100", "total /= index + 1"),
        ("total += 1 - (output.argmax(1) == y).float().mean()", "print(total / len(loader))"),
        ("total += (output.argmax(1) == y).sum().item() / y.size(0)", "print(total / len(loader))"),
        ("values.append(loss.item())", "print(np.mean(values))"),
        ("values.append(loss)", "print(torch.stack(values).mean())"),
        ("values += [loss.item()]", "print(sum(values) / len(values))"),
        ("values.append({'loss': loss})", "print(np.mean([one['loss'].item() for one in values]))"),
        ("total += loss.item(); mean = total / (index + 1)", "print(mean)"),
        (
            "for kind in range(3): total += (output[:, kind] == y).float().mean()",
            "print(total / len(loader))",
        ),
    ],
)
def test_the_mean_of_numbers_of_batches(tmp_path: Path, add: str, leave: str) -> None:
    mean = _mean(tmp_path, add, leave)
    assert mean is not None
    assert (mean.per, mean.trains, mean.is_uneven) == ("batches", False, True)


@pytest.mark.parametrize("leave", ["print(total / len(loader.dataset))", "print(total / seen)"])
def test_numbers_of_batches_divided_by_samples(tmp_path: Path, leave: str) -> None:
    mean = _mean(tmp_path, "total += loss.item()", leave)
    assert mean is not None
    assert mean.per == "samples"


@pytest.mark.parametrize(
    ("add", "leave"),
    [
        ("total += loss.item() * len(y)", "print(total / seen)"),
        ("total += F.cross_entropy(output, y, reduction='sum')", "print(total / len(loader))"),
        ("total += (output.argmax(1) == y).sum()", "print(total / len(loader.dataset))"),
        ("total += loss.item() * scale", "print(total / len(loader.dataset))"),
        ("values.append(F.cross_entropy(output, y, reduction='none'))", "print(torch.cat(values).mean())"),
        ("total += something(output, y)", "print(total / len(loader))"),
        (
            "for row in range(len(y)): total += F.cross_entropy(output[row], y[row]).item()",
            "print(total / len(loader.dataset))",
        ),
        (
            "for one, other in zip(output, y): values.append((one - other).mean().item())",
            "print(np.mean(values))",
        ),
    ],
)
def test_sums_and_what_nobody_knows_are_no_such_means(tmp_path: Path, add: str, leave: str) -> None:
    assert _mean(tmp_path, add, leave) is None


def test_batches_of_one_sample(tmp_path: Path) -> None:
    mean = _mean(tmp_path, "total += loss.item()", "print(total / len(loader))", "1")
    assert mean is not None
    assert mean.of_singles
    assert not mean.is_uneven
