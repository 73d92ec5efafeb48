"""Mixed precision with a gradient scaler."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    criterion = nn.CrossEntropyLoss()
    for _ in range(30):
        x = torch.randn(32, 12)
        y = x[:, :3].argmax(dim=1)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # bug: TA605
        scaler.step(optimizer)
        scaler.update()
    print(loss.item())


if __name__ == "__main__":
    main()
