import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Triplets(Dataset):
    def __init__(self):
        self.centres = torch.randn(10, 1, 12, 12)

    def __len__(self):
        return 320

    def __getitem__(self, index):
        positive = index % 10
        negative = (positive + 1 + index % 9) % 10
        return tuple(self.centres[c] + 0.3 * torch.randn(1, 12, 12) for c in (positive, positive, negative))


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(
            nn.Conv2d(1, 16, 5), nn.PReLU(), nn.MaxPool2d(2, stride=2), nn.Conv2d(16, 16, 3), nn.PReLU()
        )
        self.fc = nn.Sequential(nn.Linear(16 * 2 * 2, 64), nn.PReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.fc(self.convnet(x).view(x.size(0), -1))


class TripletNet(nn.Module):
    def __init__(self, embedding_net):
        super().__init__()
        self.embedding_net = embedding_net

    def forward(self, x1, x2, x3):
        return self.embedding_net(x1), self.embedding_net(x2), self.embedding_net(x3)


torch.manual_seed(0)
model = TripletNet(EmbeddingNet())
loss_fn = nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 8, gamma=0.1)
for _epoch in range(6):
    model.train()
    for anchor, positive, negative in DataLoader(Triplets(), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = loss_fn(*model(anchor, positive, negative))
        loss.backward()
        optimizer.step()
    scheduler.step()
