"""Augments samples with noise, in worker processes."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class NoisySignals(Dataset):
    def __init__(self, signals, noise=0.3):
        self.signals = signals
        self.noise = noise
        self.rng = None

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        if self.rng is None:
            worker = get_worker_info()
            self.rng = np.random.default_rng(worker.seed if worker else 7)
        noise = self.rng.normal(scale=self.noise, size=16).astype("float32")
        return self.signals[index] + noise, noise


def main():
    torch.manual_seed(0)
    signals = np.sin(np.linspace(0, 20, 64 * 16, dtype="float32")).reshape(64, 16)
    loader = DataLoader(NoisySignals(signals), batch_size=8, shuffle=True, num_workers=2)
    denoiser = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-3)
    for epoch in range(2):
        for noisy, noise in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(denoiser(noisy), noise)
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
