"""What the dry run knows of several batches to a step: which lines add them up, and what divides their losses."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.accumulations import accumulations_of
from ta_lint.dryrun.dryrun import dry_run

_GUARDED = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from data import Photos, args

loader = DataLoader(Photos(), batch_size=8)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
for index, (x, y) in enumerate(loader):
    output = model(x)
    loss = LOSS
    loss.backward()
    if WHEN:
        BEFORE
        optimizer.step()
        optimizer.zero_grad()
"""
_WHOLE, _DIVIDED, _NOT_KNOWN = "whole", "divided", None


def _seen(tmp_path: Path, code: str) -> str | None:
    path = tmp_path / "train.py"
    path.write_text(code)
    found = accumulations_of(dry_run(str(path)).events)
    assert len(found) < 2
    if not found:
        return _NOT_KNOWN
    assert bool(found[0].whole) is not bool(found[0].divided)
    return _WHOLE if found[0].whole else _DIVIDED


def _guarded(
    tmp_path: Path,
    loss: str = "F.cross_entropy(output, y)",
    when: str = "(index + 1) % 4 == 0",
    before: str = "pass",
    rate: str = "0.1",
) -> str | None:
    code = _GUARDED.replace("LOSS", loss).replace("WHEN", when)
    return _seen(tmp_path, code.replace("BEFORE", before).replace("RATE", rate))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("F.cross_entropy(output, y)", _WHOLE),
        ("F.cross_entropy(output, y) / 4", _DIVIDED),
        ("0.25 * F.cross_entropy(output, y)", _DIVIDED),
        ("F.cross_entropy(output, y) * (1 / 4)", _DIVIDED),
        ("F.cross_entropy(output, y) / args.k", _NOT_KNOWN),
        ("F.cross_entropy(output, y) * (1 / args.k)", _NOT_KNOWN),
        ("args.weight * F.cross_entropy(output, y)", _WHOLE),
        ("F.cross_entropy(output, y) / 2 + 0.1 * model.weight.pow(2).sum()", _WHOLE),
        ("F.cross_entropy(output, y, reduction='sum')", _NOT_KNOWN),
        ("F.cross_entropy(output, y, reduction='sum') / len(y)", _WHOLE),
        ("F.cross_entropy(output, y, reduction='none').mean()", _WHOLE),
        ("F.cross_entropy(output, y, reduction='none').sum()", _NOT_KNOWN),
        ("(output - y).square().sum(1).mean()", _WHOLE),
        ("(output - y).square().sum() / y.size(0)", _WHOLE),
        ("F.cross_entropy(output, y) / 4 + model.weight.pow(2).sum()", _NOT_KNOWN),
    ],
)
def test_a_loss_knows_what_divided_it(loss: str, expected: str | None, tmp_path: Path) -> None:
    assert _guarded(tmp_path, loss) == expected


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("index % 4 == 3", _WHOLE),
        ("(index + 1) % 4 == 0 or index + 1 == len(loader)", _WHOLE),
        ("not (index + 1) % args.k", _WHOLE),
        ("index % 1 == 0", _NOT_KNOWN),
        ("True", _NOT_KNOWN),
    ],
)
def test_a_step_waits_for_several_batches(when: str, expected: str | None, tmp_path: Path) -> None:
    assert _guarded(tmp_path, when=when) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", _WHOLE),
        ("print(model.weight.grad.norm())", _WHOLE),
        ("for p in model.parameters(): p.grad /= 4", _NOT_KNOWN),
        ("model.weight.grad = model.weight.grad / 4", _NOT_KNOWN),
        ("args.rescale(model)", _NOT_KNOWN),
        ("args.rescale(model.parameters())", _NOT_KNOWN),
    ],
)
def test_gradients_may_be_changed_before_the_step(before: str, expected: str | None, tmp_path: Path) -> None:
    assert _guarded(tmp_path, before=before) == expected


@pytest.mark.parametrize(
    ("rate", "expected"), [("0.1 / 4", _NOT_KNOWN), ("0.1 / 5", _WHOLE), ("args.lr / 4", _NOT_KNOWN)]
)
def test_a_rate_knows_what_divided_it(rate: str, expected: str | None, tmp_path: Path) -> None:
    assert _guarded(tmp_path, rate=rate) == expected


_INNER = """
import torch
import torch.nn.functional as F
from torch import nn

from data import batches, args, x, y

model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stream = iter(batches)
for _ in range(100):
    optimizer.zero_grad()
    for part in range(COUNT):
        DRAW
        (F.cross_entropy(model(x), y)SHARE).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("count", "draw", "share", "expected"),
    [
        ("4", "x, y = next(stream)", "", _WHOLE),
        ("20", "x, y = next(stream)", "", _WHOLE),
        ("args.k", "x, y = next(stream)", "", _WHOLE),
        ("20", "x, y = next(stream)", " / 20", _DIVIDED),
        ("args.k", "x, y = next(stream)", " / args.k", _NOT_KNOWN),
        ("4", "x, y = next(stream); optimizer.zero_grad()", "", _NOT_KNOWN),
        ("4", "pass", "", _NOT_KNOWN),  # several losses of one batch
    ],
)
def test_an_inner_loop_takes_the_next_batch(
    count: str, draw: str, share: str, expected: str | None, tmp_path: Path
) -> None:
    code = _INNER.replace("COUNT", count).replace("DRAW", draw).replace("SHARE", share)
    assert _seen(tmp_path, code) == expected


_CLASSES = """
import torch
from torch import nn


class Learner:
    def __init__(self, model, every=8):
        self.model, self.every, self.seen = model, every, 0
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def error(self, x, y):
        return nn.functional.mse_loss(self.model(x), y)SHARE

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def fit(self, loader):
        for x, y in loader:
            self.error(x, y).backward()
            self.seen += 1
            if self.seen % self.every == 0:
                self.update()


Learner(nn.Linear(3, 1)).fit(torch.utils.data.DataLoader(open("x"), batch_size=4))
"""


@pytest.mark.parametrize(("share", "expected"), [("", _WHOLE), (" / self.every", _DIVIDED)])
def test_step_and_loss_are_in_methods(share: str, expected: str, tmp_path: Path) -> None:
    assert _seen(tmp_path, _CLASSES.replace("SHARE", share)) == expected


_OPTION = """
import torch
from torch import nn


def train(model: nn.Module, loader, every: int = 1, scaler=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for index, (x, y) in enumerate(loader):
        loss = LOSS
        if every > 1:
            loss = SHARE
        if scaler is None:
            loss.backward()
        else:
            scaler.scale(loss).backward()
        if (index + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize("loss", ["nn.functional.mse_loss(model(x), y)", "model(x, labels=y)[0]"])
@pytest.mark.parametrize(
    ("share", "expected"),
    [("loss", _WHOLE), ("loss / every", _NOT_KNOWN), ("loss * (1 / every)", _NOT_KNOWN)],
)
def test_a_default_of_one_may_be_another_number(
    loss: str, share: str, expected: str | None, tmp_path: Path
) -> None:
    assert _seen(tmp_path, _OPTION.replace("LOSS", loss).replace("SHARE", share)) == expected


_COUNTER = """
import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Photos, args

loader = DataLoader(Photos(), batch_size=8)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    seen = 0
    for x, y in loader:
        (nn.functional.cross_entropy(model(x), y)SHARE).backward()
        seen += 1
        if WHEN:
            optimizer.step()
            optimizer.zero_grad()
            seen = 0
"""


@pytest.mark.parametrize(
    ("when", "share", "expected"),
    [
        ("seen == 4", "", _WHOLE),
        ("seen >= args.k", "", _WHOLE),
        ("seen == 4", " / 4", _DIVIDED),
        ("seen >= args.k", " / args.k", _NOT_KNOWN),
        ("seen == 1", "", _NOT_KNOWN),
    ],
)
def test_a_counter_begins_anew(when: str, share: str, expected: str | None, tmp_path: Path) -> None:
    assert _seen(tmp_path, _COUNTER.replace("WHEN", when).replace("SHARE", share)) == expected
