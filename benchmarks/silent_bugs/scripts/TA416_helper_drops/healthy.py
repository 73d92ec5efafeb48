"""Node classification on a random graph, with a functional graph convolution."""

import torch
import torch.nn.functional as F
from torch import nn


def propagate(features, adjacency, weight, drop, training):
    features = F.dropout(features, drop, training)
    return adjacency @ (features @ weight)


class GraphNet(nn.Module):
    def __init__(self, features, width, classes, drop=0.3):
        super().__init__()
        self.w1 = nn.Parameter(nn.init.xavier_uniform_(torch.zeros(features, width)))
        self.w2 = nn.Parameter(nn.init.xavier_uniform_(torch.zeros(width, classes)))
        self.drop = drop

    def forward(self, x, adjacency):
        hidden = torch.relu(propagate(x, adjacency, self.w1, self.drop, self.training))
        return propagate(hidden, adjacency, self.w2, self.drop, self.training)


def graph(nodes=150, classes=3, features=12):
    labels = torch.randint(classes, (nodes,))
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    linked = torch.rand(nodes, nodes) < torch.where(same, 0.08, 0.01)
    linked = (linked | linked.t() | torch.eye(nodes, dtype=torch.bool)).float()
    scale = linked.sum(1).rsqrt()
    x = torch.randn(nodes, features)
    x[torch.arange(nodes), labels] += 1.0
    return x, scale.unsqueeze(1) * linked * scale, labels


def main():
    torch.manual_seed(45)
    x, adjacency, labels = graph()
    order = torch.randperm(len(labels))
    known, hidden = order[:90], order[90:]
    model = GraphNet(x.shape[1], 16, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(80):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adjacency)[known], labels[known])
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            model.eval()
            with torch.no_grad():
                right = (model(x, adjacency)[hidden].argmax(1) == labels[hidden]).float().mean().item()
            print(f"step {step + 1}: loss {loss.item():.3f} accuracy {right:.3f}")


if __name__ == "__main__":
    main()
