import argparse

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def backbone():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )


class TransferModel(L.LightningModule):
    def __init__(self, num_classes: int, lr: float = 1e-3, train_bn: bool = False):
        super().__init__()
        self.save_hyperparameters()
        self.feature_extractor = backbone()
        for param in self.feature_extractor.parameters():
            param.requires_grad = False
        self.classifier = nn.Linear(4, num_classes)

    def on_train_epoch_start(self):
        if not self.hparams.train_bn:
            self.feature_extractor.eval()

    def forward(self, images):
        with torch.no_grad():
            features = self.feature_extractor(images)
        return self.classifier(features)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        trainable = filter(lambda p: p.requires_grad, self.parameters())
        return torch.optim.Adam(trainable, lr=self.hparams.lr)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


def main(args):
    data = TensorDataset(torch.randn(12, 3, 8, 8), torch.randint(0, 3, (12,)))
    model = TransferModel(3, lr=args.lr)
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, DataLoader(data, batch_size=4, shuffle=True))


if __name__ == "__main__":
    main(parse())
