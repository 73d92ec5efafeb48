"""Trains on spectrograms."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectrograms(Dataset):
    def __init__(self, count=160):
        self.waves = torch.randn(count, 4000)
        self.labels = (torch.arange(count) % 2).long()
        self.cache = [self._transform(wave) for wave in self.waves]

    def __len__(self):
        return len(self.waves)

    def _transform(self, wave):
        for n_fft in (64, 128, 256, 512):
            spectrum = torch.stft(
                wave, n_fft, hop_length=16, window=torch.hann_window(n_fft), return_complex=True
            )
        return spectrum.abs().mean(dim=1)[:64].log1p()

    def __getitem__(self, index):
        return self.cache[index], self.labels[index]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Spectrograms(), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for spectra, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(spectra), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
