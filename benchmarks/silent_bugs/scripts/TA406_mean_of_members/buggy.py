"""An ensemble that is trained as one classifier."""

import torch
from torch import nn
from torch.nn import functional as F


class Ensemble(nn.Module):
    def __init__(self, members, inputs, classes):
        super().__init__()
        self.members = nn.ModuleList(
            nn.Sequential(nn.Linear(inputs, 16), nn.ELU(), nn.Linear(16, classes)) for _ in range(members)
        )

    def forward(self, x):
        votes = torch.stack([member(x).softmax(dim=-1) for member in self.members])
        return votes.mean(dim=0)


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, batches, size, classes, inputs):
        self.batches, self.size = batches, size
        self.centres = 2 * torch.randn(classes, inputs)

    def __iter__(self):
        for _ in range(self.batches):
            labels = torch.randint(len(self.centres), (self.size,))
            yield self.centres[labels] + 0.7 * torch.randn(self.size, self.centres.shape[1]), labels


def main():
    torch.manual_seed(21)
    stream = Stream(batches=150, size=32, classes=6, inputs=5)
    model = Ensemble(members=3, inputs=5, classes=6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    smooth = None
    for step, (x, labels) in enumerate(torch.utils.data.DataLoader(stream, batch_size=None)):
        output = model(x)
        loss = F.cross_entropy(output, labels)  # bug: TA406
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
        if step % 30 == 29:
            print(f"step {step + 1}: {smooth:.3f}")


main()
