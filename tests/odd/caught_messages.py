# The types and messages of errors, without tracebacks.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    for wrong in (
        lambda: model(torch.randn(8, 5)),
        lambda: torch.exp("text"),
        lambda: torch.exp(),
        lambda: torch.Tensor.exp(),
        lambda: torch.Tensor.exp(3),
        lambda: torch.ones(1).exp(1),
        lambda: torch.softmax(loss, 7),
        lambda: loss.backward(),
        lambda: torch.ones(2).item(),
        lambda: bool(torch.ones(2)),
        lambda: torch.ones(2) * "a",
        lambda: torch.ones(2)[5],
        lambda: nn.functional.cross_entropy(torch.ones(2, 2), torch.tensor([0, 5])),
        lambda: nn.functional.mse_loss(1),
        lambda: torch.load("nowhere.pt"),
        lambda: optimizer.step(1, 2),
        lambda: nn.Linear(4),
        lambda: torch.randint(),
        lambda: model.train(1),
        lambda: torch.pow(loss),
    ):
        try:
            wrong()
        except Exception as error:
            print(type(error).__name__, str(error).splitlines()[0])
told(model)
