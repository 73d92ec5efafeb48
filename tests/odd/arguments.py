# words: arguments.py --rate 0.1 --every 3 -q -- --record x
# Options that look like ours belong to the script.
import argparse
import sys

import torch
from told import told
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--every", type=int)
parser.add_argument("-q", action="store_true")
parser.add_argument("rest", nargs="*")
given = parser.parse_args()
print(given, sys.argv[1:], sys.argv[0].endswith("arguments.py"), parser.prog)
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=given.rate)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
told(model)
