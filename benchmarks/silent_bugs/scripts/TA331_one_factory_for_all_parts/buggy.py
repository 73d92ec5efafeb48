import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader(data, training):
    return DataLoader(data, batch_size=64, shuffle=training, drop_last=True)  # bug: TA331 (runtime)


@torch.inference_mode()
def validate(model, loader):
    model.eval()
    losses = [nn.functional.l1_loss(model(x), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    x = torch.randn(680, 5)
    y = x.prod(1, keepdim=True)
    train = make_loader(TensorDataset(x[:512], y[:512]), training=True)
    held_out = make_loader(TensorDataset(x[512:], y[512:]), training=False)
    model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        model.train()
        for inputs, target in train:
            optimizer.zero_grad()
            nn.functional.l1_loss(model(inputs), target).backward()
            optimizer.step()
        print(epoch, validate(model, held_out))


if __name__ == "__main__":
    main()
