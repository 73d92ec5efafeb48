# real
# A child Python reads its script from a pipe and trains.
import subprocess
import sys

text = """
import torch
from torch import nn
from told import told
torch.manual_seed(0); model = nn.Linear(4, 1); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad(); model(torch.randn(8, 4)).pow(2).mean().backward(); optimizer.step()
told(model)
"""
ran = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True)
print(
    ran.stdout,
    ran.returncode,
    [line for line in ran.stderr.splitlines() if not line.startswith("ta-runtime:")],
)
