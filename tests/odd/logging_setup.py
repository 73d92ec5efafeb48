# Logging is configured by the script: root level, handlers, a dictionary, captured warnings.
import logging
import logging.config
import sys
import warnings

import torch
from told import told
from torch import nn

logging.basicConfig(
    level=logging.DEBUG,
    stream=sys.stdout,
    format="%(levelname)s %(name)s %(filename)s %(lineno)d %(funcName)s %(message)s",
)
logging.captureWarnings(True)
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = logging.getLogger("train")
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.ones(8, 1))
    loss.backward()
    optimizer.step()
    log.info("loss %.6f", loss.item())
warnings.warn("captured")
logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
print(
    sorted(name for name in logging.root.manager.loggerDict if name.startswith("ta_")),
    len(logging.root.handlers),
)
told(model)
