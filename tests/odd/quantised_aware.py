# Quantisation aware training with fake quantisation, converted at the end.
import warnings

import torch
from told import told
from torch import nn
from torch.ao import quantization

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Sequential(
    quantization.QuantStub(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2), quantization.DeQuantStub()
)
model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
model = quantization.prepare_qat(model.train())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 8)).pow(2).mean().backward()
    optimizer.step()
converted = quantization.convert(model.eval())
told(
    [(name, value) for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)],
    converted(torch.ones(2, 8)),
)
