# NumPy arrays share memory with tensors, and ufuncs of NumPy take tensors.
import numpy
import torch
from told import told
from torch import nn

torch.manual_seed(0)
array = numpy.zeros((8, 4), dtype=numpy.float32)
x = torch.from_numpy(array)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    array += step
    optimizer.zero_grad()
    out = model(x)
    out.pow(2).mean().backward()
    optimizer.step()
    print(
        numpy.exp(x[:1]).sum(),
        float(out[0]),
        int(out[1]),
        bool(out[2] > 0),
        out.detach().numpy().shape,
        numpy.asarray(x) is not None,
        [*out[:2, 0].tolist()],
    )
told(model)
