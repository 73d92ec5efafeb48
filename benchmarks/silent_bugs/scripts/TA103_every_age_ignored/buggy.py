"""Two classifiers on voice features: speaker and age group. Unknown ages do not count."""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

AGES = {"child": 0, "adult": 1, "senior": 2}
UNKNOWN = -100


class Voices(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        centres = torch.randn(5, 10, generator=generator)
        self.rows = []
        for _ in range(n):
            speaker, age = rng.randrange(5), rng.choice(["Child", "Adult", "Senior", ""])
            features = centres[speaker] + 0.5 * torch.randn(10, generator=generator)
            features[0] += len(age)
            self.rows.append((features, speaker, age))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        features, speaker, age = self.rows[index]
        return features, speaker, AGES.get(age, UNKNOWN)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(10, 32)
        self.speaker = nn.Linear(32, 5)
        self.age = nn.Linear(32, 3)  # bug: TA103 (runtime)

    def forward(self, x):
        h = torch.tanh(self.shared(x))
        return self.speaker(h), self.age(h)


def mean_of_known(logits, target):
    known = (target != UNKNOWN).sum().clamp(min=1)
    return F.cross_entropy(logits, target, ignore_index=UNKNOWN, reduction="sum") / known


def main():
    torch.manual_seed(2)
    loader = DataLoader(Voices(800, seed=2), batch_size=20, shuffle=True)
    net = Heads()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(3):
        sums = [0.0, 0.0]
        for features, speaker, age in loader:
            by_speaker, by_age = net(features)
            speaker_loss, age_loss = F.cross_entropy(by_speaker, speaker), mean_of_known(by_age, age)
            optimizer.zero_grad()
            (speaker_loss + age_loss).backward()
            optimizer.step()
            sums[0] += speaker_loss.item()
            sums[1] += age_loss.item()
        print(f"epoch {epoch} speaker {sums[0] / len(loader):.3f} age {sums[1] / len(loader):.3f}")


if __name__ == "__main__":
    main()
