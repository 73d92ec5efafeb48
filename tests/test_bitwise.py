"""A run is bitwise what it would have been: weights, optimizer state, random numbers and losses, every step audited."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ta_runtime.audit.audit import Audit
from ta_runtime.settings import resolve

STEPS = 6
Result = dict[str, Any]


def mlp() -> Result:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=0.1)
    data = TensorDataset(torch.randn(24, 8), torch.randint(0, 3, (24,)))
    losses = []
    for _ in range(2):
        for inputs, target in DataLoader(data, batch_size=8, shuffle=True):
            loss = nn.CrossEntropyLoss()(model(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return {"losses": losses, "model": model, "optimizer": optimizer}


def cnn() -> Result:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout2d(0.3),
        nn.Conv2d(8, 8, 2, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(72, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=STEPS)
    losses = []
    for step in range(STEPS):
        loss = F.cross_entropy(model(torch.randn(5, 3, 8, 8)), torch.randint(0, 4, (5,)))
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
        if step == 3:
            model.eval()
            with torch.no_grad():
                losses.append(model(torch.randn(5, 3, 8, 8)))
            model.train()
    return {"losses": losses, "model": model, "optimizer": optimizer, "scheduler": scheduler}


class GPT(nn.Module):
    """Two layers, tied head, its own loss."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(31, 16), nn.Embedding(12, 16)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.head = nn.Linear(16, 31, bias=False)
        self.head.weight = self.token.weight

    def forward(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        hidden = self.token(ids) + self.place(torch.arange(ids.shape[1]))
        for block in self.blocks:
            hidden = block(hidden, src_mask=nn.Transformer.generate_square_subsequent_mask(ids.shape[1]))
        logits = self.head(hidden)
        return {
            "loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100),
            "logits": logits,
        }


def gpt() -> Result:
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        ids = torch.randint(0, 31, (3, 12))
        loss = model(ids, labels=ids.masked_fill(torch.rand(3, 12) < 0.2, -100))["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return {"losses": losses, "model": model, "optimizer": optimizer}


def lstm() -> Result:
    model = nn.ModuleDict({"rnn": nn.LSTM(5, 7, 2, dropout=0.3, batch_first=True), "head": nn.Linear(7, 1)})
    optimizer = torch.optim.RMSprop(model.parameters())
    losses = []
    for _ in range(STEPS):
        packed = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 6, 5), [6, 5, 3, 1], batch_first=True)
        _, (hidden, _) = model["rnn"](packed)
        loss = F.mse_loss(torch.sigmoid(model["head"](hidden[-1])), torch.rand(4, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": losses, "model": model, "optimizer": optimizer}


def gan() -> Result:
    generator = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh())
    critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(8, 1), nn.Sigmoid())
    first = torch.optim.Adam(generator.parameters(), betas=(0.5, 0.999))
    second = torch.optim.Adam(critic.parameters(), betas=(0.5, 0.999))
    losses = []
    for step in range(STEPS):
        fake = generator(torch.randn(5, 4))
        loss = F.binary_cross_entropy(critic(torch.randn(5, 6)), torch.ones(5, 1))
        loss = loss + F.binary_cross_entropy(critic(fake.detach()), torch.zeros(5, 1))
        second.zero_grad()
        loss.backward()
        second.step()
        losses.append(loss.detach())
        if step % 2:  # the generator steps half as often
            loss = F.binary_cross_entropy(critic(fake), torch.ones(5, 1))
            first.zero_grad()
            loss.backward()
            first.step()
    return {"losses": losses, "generator": generator, "critic": critic, "first": first, "second": second}


def accumulation() -> Result:
    model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Dropout(0.1), nn.Linear(12, 1))
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    losses = []
    for _ in range(STEPS):
        for _ in range(3):
            loss = F.smooth_l1_loss(model(torch.randn(4, 6)), torch.randn(4, 1)) / 3
            loss.backward()
            losses.append(loss.detach())
        losses.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for kept, parameter in zip(average.parameters(), model.parameters(), strict=True):
                kept.lerp_(parameter, 0.1)
    shadow = copy.deepcopy(model)
    return {"losses": losses, "model": model, "average": average, "shadow": shadow, "optimizer": optimizer}


def amp() -> Result:
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    losses = []
    for step in range(STEPS):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(
                model(torch.randn(4, 6) * (float("inf") if step == 2 else 1)), torch.zeros(4, 1)
            )
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach().nan_to_num())
    assert scaler.get_scale() == 512.0
    return {"losses": losses, "model": model, "optimizer": optimizer, "scaler": scaler}


def lbfgs() -> Result:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
    inputs, target = torch.randn(16, 4), torch.randn(16, 1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), target)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).detach() for _ in range(3)]
    return {"losses": losses, "model": model, "optimizer": optimizer}


def same(left: Any, right: Any) -> bool:
    """Whether two trees of tensors and numbers are bitwise the same."""
    if isinstance(left, Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, numpy.ndarray):
        return bool(numpy.array_equal(left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return callable(left) or bool(left == right)


def outcome(run: Callable[[], Result]) -> dict[str, Any]:
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    result = run()
    states = {
        key: value.state_dict() if hasattr(value, "state_dict") else value for key, value in result.items()
    }
    return {
        "result": states,
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": numpy.random.get_state(),
    }


@pytest.fixture
def audit() -> Iterator[Audit]:
    audit = Audit(resolve(every_n_steps=1, rules="ALL", output=None, live=False))
    yield audit
    audit.stop()


@pytest.mark.parametrize(
    "run", [mlp, cnn, gpt, lstm, gan, accumulation, amp, lbfgs], ids=lambda run: run.__name__
)
def test_a_run_is_bitwise_the_same_with_every_step_audited(run: Callable[[], Result], audit: Audit) -> None:
    plain = outcome(run)
    audit.start()
    audited = outcome(run)
    audit.stop()
    assert same(plain, audited)
    assert audit.session.step_count
    assert not [finding.message for finding in audit.findings if finding.rule == "TA000"]
