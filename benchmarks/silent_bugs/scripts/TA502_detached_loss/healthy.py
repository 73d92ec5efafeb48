"""An autoencoder."""

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, inputs=12, code=4):
        super().__init__()
        self.encode = nn.Linear(inputs, code)
        self.decode = nn.Linear(code, inputs)

    def forward(self, x):
        return self.decode(torch.tanh(self.encode(x)))


def main():
    torch.manual_seed(0)
    model = Autoencoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        x = torch.randn(32, 12)
        optimizer.zero_grad()
        outputs = model(x)
        loss = nn.functional.mse_loss(outputs, x)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
