"""
python examples/runtime/vision.py

Tells squares, rings and crosses apart in small colour photographs, and is far better than chance. Nothing in the source
is wrong by itself: what the images look like when they reach the model is. Under ten seconds on one CPU core; needs
torch alone.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import ta_runtime

ta_runtime.enable(every_n_steps=50)

torch.manual_seed(0)
epochs, batch_size, size, classes = 4, 32, 28, 3


class Photographs(Dataset):
    """Noisy images of shapes as image libraries read them: uint8, [height, width, colour]."""

    def __init__(self, n):
        self.labels = torch.randint(classes, (n,))
        self.images = torch.randint(0, 120, (n, size, size, 3), dtype=torch.uint8)
        ink = torch.randint(60, 130, (n, 3), dtype=torch.uint8)
        for image, label, colour in zip(self.images, self.labels, ink):
            top, left = torch.randint(1, size - 9, (2,)).tolist()
            self.draw(image[top : top + 8, left : left + 8], int(label), colour)

    def draw(self, patch, label, colour):
        if label == 0:
            patch += colour
        elif label == 1:
            patch += colour
            patch[2:-2, 2:-2] -= colour
        else:
            patch[3:5] += colour
            patch[:3, 3:5] += colour
            patch[5:, 3:5] += colour

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        # cured: return self.images[i].permute(2, 0, 1) / 255, self.labels[i]
        return self.images[i].float(), self.labels[i]


class ConvNet(nn.Module):
    def __init__(self, channels, width=24):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, kernel_size=3, padding=1)
        # cured: self.conv2 = nn.Conv2d(width, 2 * width, kernel_size=3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, 2 * width, kernel_size=3, padding=1)  # static: TA400  # runtime: TA400
        self.norm = nn.BatchNorm2d(2 * width)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.norm(self.conv2(x)))
        return self.head(x.mean(dim=(2, 3)))


train_set, test_set = Photographs(1024), Photographs(512)
train_loader = DataLoader(train_set, batch_size, shuffle=True, drop_last=True)  # opt-in: TA204
test_loader = DataLoader(test_set, 128)  # opt-in: TA204

channels = train_set[0][0].shape[0]
model = ConvNet(channels)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))

for epoch in range(epochs):
    model.train()
    total = 0.0
    for images, labels in train_loader:
        logits = model(images)  # runtime: TA301 TA303
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f}")

model.eval()
with torch.no_grad():
    hits = sum((model(images).argmax(dim=-1) == labels).sum().item() for images, labels in test_loader)
print(f"test accuracy {hits / len(test_set):.3f}")
