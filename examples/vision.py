"""
python examples/vision.py

Reads noisy seven-segment digits with a small convolutional network: 16x16 grey images, ten classes, drawn
below. The loss falls and the accuracy is far above chance. Three planted bugs, each marked on its line, keep
it from being good. Under ten seconds on one CPU core; needs torch alone.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs, batch_size, lr = 10, 64, 6e-3

# -----------------------------------------------------------------------------
# data: which segments a digit lights (top, middle, bottom, upper left, upper right, lower left, lower right),
# and the rows and columns each segment covers
SEGMENTS = [
    "1011111",
    "0000101",
    "1110110",
    "1110101",
    "0101101",
    "1111001",
    "1111011",
    "1000101",
    "1111111",
    "1111101",
]
STROKES = [
    (0, 1, 1, 6),
    (5, 6, 1, 6),
    (10, 11, 1, 6),
    (1, 5, 0, 1),
    (1, 5, 6, 7),
    (6, 10, 0, 1),
    (6, 10, 6, 7),
]


def draw_digits(n, noise=0.3):
    """n images [n, 1, 16, 16], every digit a little out of place, and their labels [n]."""
    labels = torch.randint(10, (n,))
    images = torch.zeros(n, 1, 16, 16)
    for image, label in zip(images, labels):
        top, left = torch.randint(1, 5, (1,)).item(), torch.randint(3, 7, (1,)).item()
        for lit, (r0, r1, c0, c1) in zip(SEGMENTS[label], STROKES):
            if lit == "1":
                image[0, top + r0 : top + r1, left + c0 : left + c1] = 1.0
    return images + noise * torch.randn_like(images), labels


train_set, val_set, test_set = (TensorDataset(*draw_digits(n)) for n in (2000, 1000, 1000))
train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)
test_loader = DataLoader(test_set, batch_size=250)


# -----------------------------------------------------------------------------
class ConvNet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(2 * width * 4 * 4, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return F.softmax(self.fc2(x), dim=-1)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(dim=-1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


model = ConvNet()
criterion = nn.CrossEntropyLoss()

# decay the weight matrices, not the biases
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decay}, {"params": no_decay, "weight_decay": 0.0}]
optimizer = torch.optim.Adam(groups, lr=lr, weight_decay=2e-3)  # static: TA401

# -----------------------------------------------------------------------------
best_accuracy, best_state = 0.0, None
for epoch in range(epochs):
    model.train()
    total = 0.0
    for images, labels in train_loader:
        probs = model(images)
        loss = criterion(probs, labels)  # static: TA406
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    val_accuracy = accuracy(model, val_loader)
    if val_accuracy > best_accuracy:
        best_accuracy = val_accuracy
        best_state = model.state_dict()  # static: TA616
    print(f"epoch {epoch:2d}: loss {total / len(train_loader.dataset):.4f}, val accuracy {val_accuracy:.3f}")

model.load_state_dict(best_state)
print(f"best val accuracy {best_accuracy:.3f}, restored model: val {accuracy(model, val_loader):.3f}")
print(f"test accuracy {accuracy(model, test_loader):.3f}")
