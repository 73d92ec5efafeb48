"""Keyword spotting on short synthetic clips; some recordings start late and are silent."""

import math

import torch
from torch import nn


class LogSpectrum(nn.Module):
    def __init__(self, n_fft=64, hop=32):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wave):
        spectrum = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = spectrum.real.square() + spectrum.imag.square()
        return torch.log(power + 1e-4)


class Spotter(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.front = LogSpectrum()
        self.conv = nn.Conv1d(33, 24, 3, padding=1)
        self.act = nn.LeakyReLU(0.1)
        self.out = nn.Linear(24, classes)

    def forward(self, wave):
        frames = self.act(self.conv(self.front(wave) / 4))
        return self.out(frames.mean(-1))


def batch(size, classes, generator):
    label = torch.randint(classes, (size,), generator=generator)
    t = torch.arange(512) / 512
    pitch = 20 + 25 * label[:, None]
    wave = torch.sin(2 * math.pi * pitch * t) + 0.05 * torch.randn(size, 512, generator=generator)
    late = torch.rand(size, generator=generator) < 0.05
    wave[late, :256] = 0.0
    return wave, label


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    model = Spotter(classes=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    running = None
    for step in range(80):
        wave, label = batch(32, 6, generator)
        loss = nn.functional.cross_entropy(model(wave), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        if step % 20 == 19:
            print(f"step {step + 1} loss {running:.3f}")


if __name__ == "__main__":
    main()
