import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Meters:
    def __init__(self, *names):
        self.means = {name: torchmetrics.MeanMetric() for name in names}

    def add(self, **values):
        for name, value in values.items():
            self.means[name].update(value.detach())

    def show(self, epoch):
        shown = {name: round(mean.compute().item(), 4) for name, mean in self.means.items()}
        print(epoch, shown)
        for mean in self.means.values():
            mean.reset()


torch.manual_seed(0)
data = torch.randn(256, 6)
loader = DataLoader(TensorDataset(data), batch_size=32, shuffle=True)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
meters = Meters("reconstruction", "size")
for epoch in range(6):
    for (batch,) in loader:
        code = encoder(batch)
        reconstruction, size = nn.functional.mse_loss(decoder(code), batch), code.square().mean()
        optimizer.zero_grad()
        (reconstruction + 0.01 * size).backward()
        optimizer.step()
        meters.add(reconstruction=reconstruction, size=size)
    meters.show(epoch)
