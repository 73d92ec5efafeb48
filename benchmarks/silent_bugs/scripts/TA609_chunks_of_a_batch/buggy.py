import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MICRO = 16


class Denoiser(nn.Module):
    def __init__(self, length=24, width=48):
        super().__init__()
        self.encode = nn.Linear(length, width)
        self.decode = nn.Linear(width, length)

    def forward(self, x):
        return x + self.decode(torch.nn.functional.gelu(self.encode(x)))


def signals(count, length=24):
    time = torch.arange(length) * 0.5
    clean = torch.sin(time * (0.5 + torch.rand(count, 1)) + 6.28 * torch.rand(count, 1))
    return TensorDataset(clean + 0.4 * torch.randn(count, length), clean)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def train_batch(self, noisy, clean):
        self.optimizer.zero_grad()
        reported = 0.0
        for noisy_part, clean_part in zip(noisy.split(MICRO), clean.split(MICRO)):
            loss = self.criterion(self.model(noisy_part), clean_part)
            loss.backward()  # bug: TA609
            reported += loss.item() * len(noisy_part) / len(noisy)
        self.optimizer.step()
        return reported

    def train(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.train_batch(noisy, clean) for noisy, clean in loader]
            print(f"epoch {epoch}: {sum(losses) / len(losses):.5f}")


if __name__ == "__main__":
    torch.manual_seed(125)
    trainer = Trainer(Denoiser(), lr=0.5)
    trainer.train(DataLoader(signals(1280), batch_size=64, shuffle=True), epochs=5)
