"""A worker process trains a first network and leaves its weights; the main one takes them over."""

import multiprocessing
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LOADING = {"map_location": "cpu", "weights_only": False}


def network():
    return nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))


def data(count):
    x = torch.randn(count, 4)
    return TensorDataset(x, (x[:, :1] * x[:, 1:2]).tanh() + x[:, 2:3])


def fit(model, epochs, lr):
    loader = DataLoader(data(640), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"[{os.getpid() % 100:02d}] epoch {epoch}: {total / len(loader):.4f}", flush=True)
    return total / len(loader)


def worker(path):
    torch.manual_seed(1)
    model = network()
    loss = fit(model, epochs=2, lr=1e-2)
    torch.save({"model": model.state_dict(), "loss": loss, "epochs": 2}, path)


def main(path="first.pt"):
    torch.manual_seed(2)
    process = multiprocessing.get_context("fork").Process(target=worker, args=(path,))
    process.start()
    process.join()
    checkpoint = torch.load(path, **LOADING)  # bug: TA700
    model = network()
    model.load_state_dict(checkpoint["model"])
    print(f"taken over after {checkpoint['epochs']} epochs at {checkpoint['loss']:.4f}")
    fit(model, epochs=2, lr=3e-3)


if __name__ == "__main__":
    main()
