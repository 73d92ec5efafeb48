import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--no-amp", dest="amp", action="store_false")
    return parser.parse_args()


class MatrixRegressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(6, 12)
        self.columns = nn.Linear(5, 12)
        self.out = nn.Linear(12, 1)

    def forward(self, matrix):
        hidden = torch.tanh(self.rows(matrix).mean(1) + self.columns(matrix.mT).mean(1))
        return self.out(hidden)


def train_one_epoch(model, loader, optimizer, scaler, amp):
    total = 0.0
    for matrix, target in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
            predicted = model(matrix)
        loss = nn.functional.mse_loss(predicted.float(), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # bug: TA606
        total += loss.item()
    scaler.update()
    return total / len(loader)


def main():
    args = parse_args()
    torch.manual_seed(103)
    matrices = torch.randn(640, 5, 6)
    targets = matrices.mean(dim=(1, 2))[:, None] * 3
    loader = DataLoader(TensorDataset(matrices, targets), batch_size=args.batch_size, shuffle=True)
    model = MatrixRegressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, enabled=args.amp)
    for epoch in range(args.epochs):
        print(f"epoch {epoch}: {train_one_epoch(model, loader, optimizer, scaler, args.amp):.4f}")


if __name__ == "__main__":
    main()
