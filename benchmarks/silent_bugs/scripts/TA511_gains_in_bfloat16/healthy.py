import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GainBlock(nn.Module):
    """A residual block with a learned gain for each channel."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return self.gain * x + torch.tanh(self.inner(x))


class Net(nn.Module):
    def __init__(self, features=8, width=16):
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.blocks = nn.Sequential(GainBlock(width), GainBlock(width))
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        return self.leave(self.blocks(self.enter(x)))


def make_loader():
    x = torch.randn(640, 8)
    y = x[:, :1] - 0.5 * x[:, 1:2] + 0.1 * torch.randn(640, 1)
    return DataLoader(TensorDataset(x.bfloat16(), y), batch_size=32, shuffle=True)


def main(epochs=6, lr=2e-3):
    torch.manual_seed(23)
    loader = make_loader()
    model = Net().to(torch.bfloat16)
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(masters, lr=lr)
    for epoch in range(epochs):
        losses = []
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).float(), y)
            model.zero_grad()
            loss.backward()
            for master, parameter in zip(masters, model.parameters()):
                master.grad = parameter.grad.float()
            optimizer.step()
            with torch.no_grad():
                for master, parameter in zip(masters, model.parameters()):
                    parameter.copy_(master)
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


main()
