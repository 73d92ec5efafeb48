import torch
from torch import nn


class SpeechModel(nn.Module):
    def __init__(self, n_feats=20, n_class=8):
        super().__init__()
        self.cnn = nn.Conv2d(1, 8, 3, stride=(2, 1), padding=1)
        self.norm = nn.LayerNorm(8 * n_feats // 2)
        self.rnn = nn.GRU(8 * n_feats // 2, 32, batch_first=True, bidirectional=True)
        self.classifier = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, n_class))

    def forward(self, x):
        x = self.cnn(x)
        n, c, f, t = x.shape
        x = x.view(n, c * f, t).transpose(1, 2)
        x, _ = self.rnn(self.norm(x))
        return self.classifier(x)


torch.manual_seed(0)
model = SpeechModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-4, total_steps=80)
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
patterns = torch.randn(8, 20, 5)
for _ in range(70):
    labels = torch.randint(1, 8, (8, 6))
    label_lengths = torch.randint(4, 7, (8,))
    spectrograms = torch.stack([torch.cat([patterns[c] for c in row], dim=1) for row in labels.tolist()])
    spectrograms = (spectrograms + 0.2 * torch.randn_like(spectrograms)).unsqueeze(1)
    input_lengths = label_lengths * 5
    optimizer.zero_grad()
    output = torch.log_softmax(model(spectrograms), dim=2).transpose(0, 1)
    loss = criterion(output, labels, input_lengths, label_lengths)
    loss.backward()
    optimizer.step()
    scheduler.step()
