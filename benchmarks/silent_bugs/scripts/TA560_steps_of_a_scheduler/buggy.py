"""Denoising of sine waves of one dimension, with a schedule in a class of its own."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class CosineSchedule:
    def __init__(self, num_train_timesteps):
        self.num_train_timesteps = num_train_timesteps
        steps = torch.arange(num_train_timesteps) / num_train_timesteps
        self.signal = torch.cos(steps * torch.pi / 2) * 0.999 + 0.0005

    def add_noise(self, samples, noise, timesteps):
        signal = self.signal.gather(0, timesteps).view(-1, 1, 1)
        return signal * samples + (1 - signal**2).sqrt() * noise


class ConvDenoiser(nn.Module):
    def __init__(self, steps, channels=16):
        super().__init__()
        self.time = nn.Embedding(steps, channels)
        self.first = nn.Conv1d(1, channels, 5, padding=2)
        self.second = nn.Conv1d(channels, channels, 5, padding=2)
        self.last = nn.Conv1d(channels, 1, 5, padding=2)

    def forward(self, x, timesteps):
        hidden = F.silu(self.first(x) + self.time(timesteps)[:, :, None])
        return self.last(F.silu(self.second(hidden)))


def waves(count, length=32):
    phase, frequency = torch.rand(count, 1) * 6.28, 1 + 2 * torch.rand(count, 1)
    position = torch.linspace(0, 6.28, length)
    return torch.sin(frequency * position + phase)[:, None]


def train_step(model, schedule, optimizer, batch):
    noise = torch.randn_like(batch)
    timesteps = torch.randint(0, schedule.num_train_timesteps - 1, (batch.shape[0],)).long()  # bug: TA560
    predicted = model(schedule.add_noise(batch, noise, timesteps), timesteps)
    loss = F.mse_loss(predicted, noise)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    torch.manual_seed(41)
    schedule = CosineSchedule(num_train_timesteps=100)
    model = ConvDenoiser(schedule.num_train_timesteps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    for step in range(args.steps):
        loss = train_step(model, schedule, optimizer, waves(args.batch_size))
        if step % 20 == 19:
            print(f"step {step + 1}: {loss:.4f}")


main()
