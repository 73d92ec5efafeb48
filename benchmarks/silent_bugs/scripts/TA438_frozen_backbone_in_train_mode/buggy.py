import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


class Classifier(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


torch.manual_seed(0)
backbone = Backbone(16)
model = Classifier(backbone, 16, 3)
for parameter in model.backbone.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
centers = torch.randn(3, 8)

for epoch in range(3):
    model.train()  # bug: TA438
    for _ in range(20):
        y = torch.randint(3, (32,))
        x = centers[y] + 0.5 * torch.randn(32, 8)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        y = torch.randint(3, (64,))
        scores = model(centers[y] + 0.5 * torch.randn(64, 8))
    print(epoch, loss.item(), (scores.argmax(1) == y).float().mean().item())
