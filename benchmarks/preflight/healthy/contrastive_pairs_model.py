"""A model that compares all images of its batch with all texts, as it is meant to."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(12, 16), nn.Linear(8, 16)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        one, other = F.normalize(self.image(image), dim=1), F.normalize(self.text(text), dim=1)
        return self.scale.exp() * one @ other.T


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 12), torch.randn(96, 8)), batch_size=24, shuffle=True)
model = Pairs()
optimizer = torch.optim.Adam(model.parameters())
for image, text in loader:
    logits = model(image, text)
    labels = torch.arange(len(image))
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
