import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self, symbols=30, width=16):
        super().__init__()
        self.symbols = nn.Embedding(symbols, width, padding_idx=0)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.score = nn.Linear(width, 1)
        self.reset_parameters()

    def reset_parameters(self):
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)  # bug: TA440

    def forward(self, ids):
        hidden, _ = self.mix(self.symbols(ids))
        return self.score(hidden[:, -1]).squeeze(1)


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(50):
    ids = torch.randint(1, 30, (32, 12))
    ids[:, :4] *= torch.randint(2, (32, 1))
    target = (ids[:, 4:] > 15).float().mean(1)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(ids), target)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
