# Deterministic algorithms, and an operation that has none.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()
print(
    torch.are_deterministic_algorithms_enabled(),
    torch.empty(3).isnan().all().item(),
    torch.utils.deterministic.fill_uninitialized_memory,
)
told(model)
