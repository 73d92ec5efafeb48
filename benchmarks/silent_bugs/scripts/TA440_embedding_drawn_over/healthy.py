import torch
from torch import nn

PAD = 0
torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self, words, width, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=PAD)
        self.classifier = nn.Linear(width, classes)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        nn.init.zeros_(self.embedding.weight[PAD])
        nn.init.zeros_(self.classifier.bias)

    def forward(self, ids):
        return self.classifier(self.embedding(ids).mean(1))


def batch():
    lengths = torch.randint(2, 9, (16,))
    labels = torch.randint(2, (16,))
    ids = torch.randint(1, 20, (16, 8)) + 20 * labels.unsqueeze(1)
    return torch.where(torch.arange(8) < lengths.unsqueeze(1), ids, PAD), labels


model = Reader(40, 16, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(60):
    ids, labels = batch()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(ids), labels)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
