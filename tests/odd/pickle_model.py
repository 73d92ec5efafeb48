# A model that holds functions of torch goes through pickle and torch.save while it trains.
import io
import pickle

import torch
from told import sha, told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, *functions):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.functions = functions
        self.bound = self.layer.weight.sqrt

    def forward(self, x):
        for function in self.functions:
            x = function(self.layer(x))
        return x


model = Net(torch.exp, torch.tanh, torch.Tensor.sigmoid, torch.Tensor.exp, torch.nn.functional.relu)
del model.bound
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).clamp(max=9).mean().backward()
    optimizer.step()
    buffer = io.BytesIO()
    torch.save(model, buffer)
    print(sha(buffer.getvalue()), len(buffer.getvalue()))
    again = pickle.loads(pickle.dumps((model, optimizer)))
    buffer.seek(0)
    told(torch.load(buffer, weights_only=False), *again)
    print(again[0].functions == model.functions)
told(model)
