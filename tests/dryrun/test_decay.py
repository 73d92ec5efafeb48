"""What the dry run says of the groups of an optimizer is what a real run of the same program says."""

from pathlib import Path
from typing import Any

import pytest
from observed import watched

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.decay import DecayGroup
from ta_runtime.facts import Optimizer

START = """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), RMSNorm(8))
        self.conv = nn.Conv1d(8, 8, 1, bias=False)
        self.head = nn.Linear(8, 16)

    def forward(self, ids):
        x = self.block(self.embed(ids))
        return self.head(self.conv(x.transpose(1, 2)).transpose(1, 2))


names = ("bias", "norm.weight")
model = Net()
"""
STEP = "\nmodel(torch.randint(16, (2, 4))).square().mean().backward()\noptimizer.step()\n"
BUILT = {
    "all parameters": "torch.optim.AdamW(model.parameters(), 1e-3)",
    "by position": "torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.95), 1e-8, 0.05)",
    "decay that is not decoupled": "torch.optim.SGD(model.parameters(), 0.1, weight_decay=5e-4)",
    "decay that is said to be decoupled": "torch.optim.Adam(model.parameters(), weight_decay=0.1, decoupled_weight_decay=True)",
    "groups by the ends of names": "torch.optim.AdamW([{'params': [p for n, p in model.named_parameters() if n.endswith(names)], 'weight_decay': 0}, {'params': [p for n, p in model.named_parameters() if not n.endswith(names)]}])",
    "groups by parts of names": "torch.optim.AdamW([{'params': [p for n, p in model.named_parameters() if any(x in n for x in names)], 'weight_decay': 0.0}, {'params': [p for n, p in model.named_parameters() if not any(x in n for x in names)]}], weight_decay=0.1)",
    "groups by dimensions": "torch.optim.AdamW([{'params': [p for p in model.parameters() if p.dim() > 1]}, {'params': [p for p in model.parameters() if p.ndim < 2], 'weight_decay': 0}])",
    "an empty group": "torch.optim.AdamW([{'params': model.parameters()}, {'params': [], 'weight_decay': 0}])",
    "a tied weight": "torch.optim.AdamW((setattr(model.head, 'weight', model.embed.weight), model.parameters())[1])",
    "a frozen part": "torch.optim.AdamW((model.block.requires_grad_(False), model.parameters())[1])",
    "of each module alone": "torch.optim.AdamW([{'params': [p for m in model.modules() for n, p in m.named_parameters(recurse=False) if isinstance(m, RMSNorm)], 'weight_decay': 0}, {'params': [p for m in model.modules() for p in m.parameters(False) if not isinstance(m, RMSNorm)]}])",
    "parameters one by one": "torch.optim.AdamW([model.head.weight, model.block[1].weight])",
}


@pytest.mark.parametrize("built", BUILT.values(), ids=BUILT.keys())
def test_the_dry_run_knows_the_groups_that_the_run_sees(
    built: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: list[tuple[DecayGroup, ...]] = []

    def kept(
        optimizer: Optimizer, original: Any = Optimizer.__dict__["decays"].fget
    ) -> tuple[DecayGroup, ...]:
        real.append(original(optimizer))
        return real[-1]

    monkeypatch.setattr(Optimizer, "decays", property(kept))
    watched(f"{START}optimizer = {built}{STEP}", tmp_path, path="train.py", every_n_steps=1, rules=["TA402"])
    [dry] = run_of(dry_run(str(tmp_path / "train.py")).events).optimizers
    assert dry.decays == real[0]
