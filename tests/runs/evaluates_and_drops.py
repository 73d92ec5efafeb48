"""Trains with dropout in layers and functions, evaluates after each epoch, and reads and prints what it measures."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 16, bias=False)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = self.drop(F.relu(self.norm(self.embed(x))))
        x = x.unsqueeze(1)
        x = F.scaled_dot_product_attention(x, x, x, dropout_p=0.1 if self.training else 0.0)
        return self.head(F.dropout(x.squeeze(1), 0.1, self.training))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


inputs = torch.randn(96, 8)
classes = (inputs[:, 0] > 0).long() + 2 * (inputs[:, 1] > 0).long()
train = DataLoader(TensorDataset(inputs[:64], classes[:64]), batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(inputs[64:], classes[64:]), batch_size=16)
model = Classifier()
teacher = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
best = {}
for epoch in range(4):
    for x, y in train:
        optimizer.zero_grad()
        scores = model(x)
        distance = F.kl_div(F.log_softmax(scores, 1), F.softmax(teacher(x), 1), reduction="batchmean")
        loss = F.cross_entropy(scores, y) + 0.1 * distance
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), accuracy(model, held_out))
    best = {"model": copy.deepcopy(model.state_dict()), "optimizer": optimizer.state_dict(), "epoch": epoch}
torch.save(best, "best.pt")
