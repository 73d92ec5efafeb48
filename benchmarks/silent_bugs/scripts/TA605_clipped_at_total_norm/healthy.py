"""Mixed precision on whatever device there is."""

import torch
from torch import nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.utils.data import DataLoader, TensorDataset


class Forecast(nn.Module):
    def __init__(self, lags=12, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(lags, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)


def windows(count, lags=12):
    start = torch.rand(count, 1) * 6.28
    time = torch.arange(lags + 1) * 0.4
    signal = torch.sin(start + time) + 0.05 * torch.randn(count, lags + 1)
    return TensorDataset(signal[:, :-1], signal[:, -1:])


class MixedPrecisionTrainer:
    def __init__(self, model, lr=0.05, max_norm=0.5):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = model.to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler(self.device, init_scale=2.0**13)
        self.max_norm = max_norm

    def limit_gradients(self):
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = get_total_norm([p.grad for p in parameters])
        clip_grads_with_norm_(parameters, self.max_norm, norm)

    def fit_batch(self, x, y):
        x, y = x.to(self.device), y.to(self.device)
        self.optimizer.zero_grad()
        with torch.autocast(self.device, dtype=torch.float16):
            predicted = self.model(x)
        loss = nn.functional.mse_loss(predicted.float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        self.limit_gradients()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(95)
    loader = DataLoader(windows(800), batch_size=40, shuffle=True)
    trainer = MixedPrecisionTrainer(Forecast())
    for epoch in range(5):
        losses = [trainer.fit_batch(x, y) for x, y in loader]
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
