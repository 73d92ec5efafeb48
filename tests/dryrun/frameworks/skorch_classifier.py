import numpy as np
import torch
from skorch import NeuralNetClassifier
from torch import nn


class Module(nn.Module):
    def __init__(self, units=8):
        super().__init__()
        self.dense = nn.Linear(5, units)
        self.dropout = nn.Dropout(0.5)
        self.output = nn.Linear(units, 2)

    def forward(self, x):
        return self.output(self.dropout(torch.relu(self.dense(x))))


x = np.random.randn(40, 5).astype(np.float32)
y = (x.sum(axis=1) > 0).astype(np.int64)
net = NeuralNetClassifier(
    Module,
    max_epochs=2,
    lr=0.1,
    batch_size=8,
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    module__units=6,
    verbose=0,
)
net.fit(x, y)
print(net.predict_proba(x[:4]).shape)
