import torch
from torch import nn
from torch.nn import functional as F


class SimCLR(nn.Module):
    def __init__(self, out_dim=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 32, 3, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, out_dim))

    def forward(self, x):
        return self.projector(self.encoder(x))


def info_nce_loss(features, n_views=2, temperature=0.07):
    batch = len(features) // n_views
    labels = torch.cat([torch.arange(batch) for _ in range(n_views)])
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity = features @ features.T
    mask = torch.eye(len(labels), dtype=torch.bool)
    labels = labels[~mask].view(len(labels), -1)
    similarity = similarity[~mask].view(len(similarity), -1)
    positives = similarity[labels.bool()].view(len(labels), -1)
    negatives = similarity[~labels.bool()].view(len(similarity), -1)
    logits = torch.cat([positives, negatives], dim=1)
    return logits / temperature, torch.zeros(len(logits), dtype=torch.long)


torch.manual_seed(0)
model = SimCLR()
optimizer = torch.optim.Adam(model.parameters(), 0.0003, weight_decay=0)
criterion = nn.CrossEntropyLoss()
for _ in range(70):
    x = torch.randn(32, 3, 1, 1) + 0.5 * torch.randn(32, 3, 16, 16)
    views = torch.cat([x + 0.1 * torch.randn_like(x), x.flip(3) + 0.1 * torch.randn_like(x)])
    logits, labels = info_nce_loss(model(views))
    loss = criterion(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
