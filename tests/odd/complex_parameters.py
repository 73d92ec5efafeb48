# Complex parameters and Fourier transforms.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(5, dtype=torch.complex64))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=8))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    (model(torch.randn(4, 8)).pow(2).mean() + torch.exp(1j * model.filter).real.sum()).backward()
    optimizer.step()
told(model, model.filter.conj())
