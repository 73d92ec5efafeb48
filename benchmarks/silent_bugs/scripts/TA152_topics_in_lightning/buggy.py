"""Topics of headlines: a published classifier inside a LightningModule."""

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForSequenceClassification, DistilBertConfig, DistilBertModel


class Headlines(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(count)
        self.ids = torch.randint(4, 90, (count, 12), generator=generator)
        self.topics = (self.ids[:, :4].sum(1) // 20) % 4

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.topics[index]}


class Topics(L.LightningModule):
    def __init__(self, checkpoint, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.model = AutoModelForSequenceClassification.from_pretrained(  # bug: TA152
            checkpoint, num_labels=4
        )

    def training_step(self, batch, batch_idx):
        loss = self.model(**batch).loss
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(52)
    config = DistilBertConfig(vocab_size=90, dim=32, n_layers=2, n_heads=2, hidden_dim=64)
    DistilBertModel(config).save_pretrained("distilbert-small")
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Topics("distilbert-small"), DataLoader(Headlines(640), batch_size=16, shuffle=True))


if __name__ == "__main__":
    main()
