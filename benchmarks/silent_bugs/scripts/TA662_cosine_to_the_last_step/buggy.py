"""Distances by radar: a regression with Accelerate that stops after a number of steps."""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_steps", type=int, default=90)
    parser.add_argument("--learning_rate", type=float, default=5e-2)
    parser.add_argument("--batch_size", type=int, default=16)
    return parser.parse_args()


def echoes(count):
    distance = torch.rand(count, 1)
    time = torch.linspace(0, 1, 32)
    return TensorDataset(torch.exp(-200 * (time - distance) ** 2) + 0.05 * torch.randn(count, 32), distance)


def main():
    args = options()
    set_seed(5)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9)
    loader = DataLoader(echoes(640), batch_size=args.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(  # bug: TA662
        optimizer, T_max=args.max_train_steps
    )
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    done = 0
    while done < args.max_train_steps:
        for echo, distance in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(echo), distance)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            done += 1
            if done % 15 == 0:
                accelerator.print(f"{done}: {loss.item():.4f} at {optimizer.param_groups[0]['lr']:.4f}")
            if done >= args.max_train_steps:
                break


if __name__ == "__main__":
    main()
