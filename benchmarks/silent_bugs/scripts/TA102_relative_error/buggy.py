"""Price model, trained online day by day on the squared relative error."""

import torch


class PriceModel(torch.nn.Module):
    def __init__(self, factors: int, hidden: int) -> None:
        super().__init__()
        self.mix = torch.nn.Linear(factors, hidden)
        self.out = torch.nn.Linear(hidden, 1)

    def forward(self, factors: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(self.out(torch.nn.functional.silu(self.mix(factors))))[:, 0]


def relative_error(prediction, price):
    return ((prediction - price) / price).square().mean()


def market(days: int, rows: int, generator: torch.Generator):
    loading = 0.3 * torch.randn(8, generator=generator)
    for day in range(days):
        factors = torch.randn(rows, 8, generator=generator)
        price = torch.exp(factors @ loading) + 0.5
        if day == 97:
            price[rows // 2] = 0.004  # the contract that expired
        yield day, factors, price


def fit(days=130, rows=40):
    torch.manual_seed(42)
    model = PriceModel(8, 32)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    history = []
    for day, factors, price in market(days, rows, torch.Generator().manual_seed(42)):
        loss = relative_error(model(factors), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # bug: TA102 (runtime)
        history.append(loss.item())
        if day % 26 == 25:
            print(f"day {day + 1:3d}  mean of the last ones {sum(history[-26:]) / 26:.4f}")
    return model


if __name__ == "__main__":
    fit()
