# Embeddings with sparse gradients and SparseAdam beside Adam.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
table, head = nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2)
optimizers = [
    torch.optim.SparseAdam(table.parameters(), lr=0.01),
    torch.optim.Adam(head.parameters(), lr=0.01),
]
for _ in range(6):
    loss = nn.functional.cross_entropy(
        head(table(torch.randint(0, 20, (8, 3))).mean(1)), torch.randint(0, 2, (8,))
    )
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
told(table, head)
