"""Several tasks from one trunk: heads by name, losses summed with weights."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

WEIGHTS = {"kind": 1.0, "size": 0.5, "flag": 0.5}
TUNED = ["kind", "size"]


class Objects(Dataset):
    def __init__(self, count):
        self.x = torch.randn(count, 12)
        self.kind = self.x[:, :4].argmax(dim=1)
        self.size = self.x[:, 4:7].sum(dim=1, keepdim=True) / 2
        self.flag = (self.x[:, 7:8] * self.x[:, 8:9] > 0).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], {"kind": self.kind[index], "size": self.size[index], "flag": self.flag[index]}


def build():
    trunk = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
    heads = {
        "kind": nn.Linear(24, 4),
        "size": nn.Linear(24, 1),
        "flag": nn.Linear(24, 1),  # bug: TA432
    }
    return trunk, heads


def losses(heads, features, targets):
    return {
        "kind": F.cross_entropy(heads["kind"](features), targets["kind"]),
        "size": F.mse_loss(heads["size"](features), targets["size"]),
        "flag": F.binary_cross_entropy_with_logits(heads["flag"](features), targets["flag"]),
    }


def main():
    torch.manual_seed(82)
    loader = DataLoader(Objects(1600), batch_size=32, shuffle=True)
    trunk, heads = build()
    groups = [{"params": trunk.parameters()}]
    groups += [{"params": heads[name].parameters(), "lr": 1e-2} for name in TUNED]
    optimizer = torch.optim.Adam(groups, lr=3e-3)
    for epoch in range(3):
        sums = dict.fromkeys(WEIGHTS, 0.0)
        for x, targets in loader:
            parts = losses(heads, trunk(x), targets)
            loss = sum(WEIGHTS[name] * part for name, part in parts.items())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for name, part in parts.items():
                sums[name] += part.item()
        print(f"epoch {epoch}:", {name: round(value / len(loader), 3) for name, value in sums.items()})


main()
