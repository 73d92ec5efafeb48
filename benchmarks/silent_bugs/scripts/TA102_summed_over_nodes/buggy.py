"""Node regression on packed graphs; graphs differ in size, a few are hubs."""

import torch
import torch.nn as nn
from torch.nn.functional import smooth_l1_loss
from torch.utils.data import DataLoader, Dataset


class Graphs(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        sizes = torch.randint(4, 9, (count,), generator=generator).tolist()
        sizes[count - 70] = 2600
        self.nodes = [torch.randn(n, 6, generator=generator) for n in sizes]
        self.edges = [torch.randint(n, (2, 3 * n), generator=generator) for n in sizes]

    def __len__(self):
        return len(self.nodes)

    def __getitem__(self, index):
        nodes, (source, target) = self.nodes[index], self.edges[index]
        neighbours = torch.zeros_like(nodes).index_add_(0, target, nodes[source])
        return nodes, self.edges[index], 3 + neighbours.sum(1) + nodes[:, 0]


def pack(graphs):
    offset, nodes, edges, targets = 0, [], [], []
    for x, e, y in graphs:
        nodes.append(x)
        edges.append(e + offset)
        targets.append(y)
        offset += len(x)
    return torch.cat(nodes), torch.cat(edges, 1), torch.cat(targets)


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(6, width)
        self.update = nn.Linear(6 + width, width)
        self.readout = nn.Linear(width, 1)

    def forward(self, x, edges):
        source, target = edges
        gathered = torch.zeros(len(x), self.message.out_features).index_add(
            0, target, self.message(x[source])
        )
        return self.readout(torch.tanh(self.update(torch.cat([x, gathered], 1)))).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Graphs(1000, seed=0), batch_size=5, shuffle=True, collate_fn=pack)
    model = MessagePassing(24)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step, (x, edges, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = smooth_l1_loss(model(x, edges), y, reduction="sum")
        loss.backward()
        optimizer.step()  # bug: TA102 (runtime)
        if step % 50 == 0:
            print(step, loss.item() / len(x))


if __name__ == "__main__":
    main()
