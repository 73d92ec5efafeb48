# Evaluation under inference_mode, no_grad and set_grad_enabled between steps.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    model.train()
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    model.eval()
    with torch.inference_mode():
        a = model(torch.randn(8, 4))
        print(a.is_inference(), f"{a.mean().item():.6f}")
    torch.set_grad_enabled(False)
    b = model(torch.randn(8, 4))
    print(b.requires_grad)
    torch.set_grad_enabled(True)
told(model, a.clone(), b)
