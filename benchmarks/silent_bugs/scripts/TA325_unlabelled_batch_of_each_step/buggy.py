import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, optimizer, labelled, unlabelled):
    for x, y in labelled:
        (u,) = next(iter(unlabelled))  # bug: TA325
        with torch.no_grad():
            guess = model(u).softmax(1)
        noisy = F.log_softmax(model(u + 0.1 * torch.randn_like(u)), 1)
        loss = F.cross_entropy(model(x), y) + F.kl_div(noisy, guess, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    x = torch.randn(480, 10)
    y = x[:, :4].argmax(1)
    labelled = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    unlabelled = DataLoader(TensorDataset(torch.randn(640, 10)), batch_size=16)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        print(epoch, train_epoch(model, optimizer, labelled, unlabelled))


if __name__ == "__main__":
    main()
