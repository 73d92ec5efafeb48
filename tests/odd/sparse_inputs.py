# Sparse inputs: COO and CSR matrices times dense weights.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 2))

    def forward(self, x):
        return torch.sparse.mm(x, self.weight) if x.layout is torch.sparse_coo else x @ self.weight


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    dense = torch.randn(4, 6).relu()
    x = dense.to_sparse() if step % 2 else dense.to_sparse_csr()
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
told(model)
