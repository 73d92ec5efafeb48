import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, size):
        self.tokens = torch.randint(0, 20, (size, 9))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        row = self.tokens[index]
        return {"input": row[:-1], "target": row[1:]}


class LanguageModel(pl.LightningModule):
    def __init__(self, vocabulary=20, width=16, steps=10):
        super().__init__()
        self.steps = steps
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embedding(tokens))
        return self.head(hidden)

    def training_step(self, batch, batch_idx):
        logits = self(batch["input"])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch["target"])
        return {"loss": loss, "tokens": batch["input"].numel()}

    def validation_step(self, batch, batch_idx):
        logits = self.forward(batch["input"])
        self.log("perplexity", nn.functional.cross_entropy(logits.transpose(1, 2), batch["target"]).exp())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=3e-3)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=self.steps)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


train = DataLoader(Sequences(32), batch_size=4, shuffle=True)
val = DataLoader(Sequences(8), batch_size=4)
trainer = pl.Trainer(
    max_epochs=1,
    accelerator="cpu",
    accumulate_grad_batches=2,
    gradient_clip_val=0.5,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(LanguageModel(), train, val)
