"""Tags each step of a sequence with a small convolutional network."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class StepTagger(nn.Module):
    def __init__(self, inputs, tags, width=20):
        super().__init__()
        self.lift = nn.Linear(inputs, width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.score = nn.Linear(width, tags)

    def forward(self, x):
        h = torch.relu(self.lift(x))
        h = h + torch.relu(self.mix(h.transpose(1, 2))).transpose(1, 2)
        return F.log_softmax(self.score(h), dim=1)  # bug: TA407


def sequences(count, length=8, tags=5):
    labels = torch.randint(tags, (count, length))
    clean = F.one_hot(labels, tags).float()
    before = torch.roll(clean, 1, dims=1)
    x = torch.cat([clean + 0.3 * before, before], dim=-1) - 0.2
    return TensorDataset(x + 0.3 * torch.randn_like(x), labels)


def loss_of(model, x, labels):
    by_class = model(x).permute(0, 2, 1)
    return F.nll_loss(by_class, labels)  # bug: TA407


def main():
    torch.manual_seed(17)
    training = DataLoader(sequences(1600), batch_size=32, shuffle=True)
    x, labels = sequences(200).tensors
    model = StepTagger(inputs=10, tags=5)
    optimizer = torch.optim.NAdam(model.parameters(), lr=4e-3)
    for epoch in range(3):
        model.train()
        losses = []
        for inputs, targets in training:
            loss = loss_of(model, inputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.inference_mode():
            right = (model(x).argmax(-1) == labels).float().mean().item()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, right {right:.3f}")


if __name__ == "__main__":
    main()
