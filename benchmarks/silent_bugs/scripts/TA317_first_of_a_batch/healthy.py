"""Regresses joint angles from marker positions; samples come as dictionaries."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Poses(Dataset):
    def __init__(self, n, markers=24, joints=6):
        generator = torch.Generator().manual_seed(58)
        self.markers = torch.randn(n, markers, generator=generator)
        weights = torch.randn(markers, joints, generator=generator) / markers**0.5
        self.angles = torch.tanh(self.markers @ weights)

    def __len__(self):
        return len(self.markers)

    def __getitem__(self, index):
        return {"markers": self.markers[index], "angles": self.angles[index]}


class PoseNet(nn.Module):
    def __init__(self, markers=24, joints=6, hidden=48):
        super().__init__()
        self.hidden = nn.Linear(markers, hidden)
        self.angles = nn.Linear(hidden, joints)

    def forward(self, markers):
        return torch.tanh(self.angles(nn.functional.silu(self.hidden(markers))))


def train(config):
    torch.manual_seed(config["seed"])
    loader = DataLoader(Poses(config["poses"]), batch_size=config["batch_size"], shuffle=True)
    net = PoseNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"], momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config["epochs"], eta_min=1e-3)
    for epoch in range(config["epochs"]):
        total = 0.0
        for batch in loader:
            markers, angles = batch["markers"], batch["angles"]
            predicted = net(markers)
            loss = nn.functional.mse_loss(predicted, angles)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    train({"poses": 960, "batch_size": 16, "epochs": 4, "lr": 0.02, "seed": 58})
