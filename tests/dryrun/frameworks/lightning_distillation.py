import torch
import torch.nn.functional as F
from pytorch_lightning import LightningDataModule, LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 4))


class Distiller(LightningModule):
    def __init__(self, student: nn.Module, teacher: nn.Module, temperature: float = 2.0, alpha: float = 0.5):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.teacher.eval()
        self.teacher.requires_grad_(False)
        self.temperature, self.alpha = temperature, alpha

    def training_step(self, batch, _):
        inputs, labels = batch
        student_logits = self.student(inputs)
        with torch.no_grad():
            teacher_logits = self.teacher(inputs)
        hard = F.cross_entropy(student_logits, labels)
        soft = F.kl_div(
            F.log_softmax(student_logits / self.temperature, dim=-1),
            F.softmax(teacher_logits / self.temperature, dim=-1),
            reduction="batchmean",
        )
        return self.alpha * hard + (1 - self.alpha) * soft * self.temperature**2

    @torch.inference_mode()
    def agreement(self, inputs):
        return (self.student(inputs).argmax(-1) == self.teacher(inputs).argmax(-1)).float().mean()

    def validation_step(self, batch, _):
        self.log("agreement", self.agreement(batch[0]))

    def configure_optimizers(self):
        return [torch.optim.SGD(self.student.parameters(), lr=0.05, nesterov=True, momentum=0.9)]


class Data(LightningDataModule):
    def prepare_data(self):
        pass

    def setup(self, stage):
        self.data = TensorDataset(torch.randn(20, 10), torch.randint(0, 4, (20,)))

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=5, shuffle=True)

    def val_dataloader(self):
        return [DataLoader(self.data, batch_size=10)]


if __name__ == "__main__":
    trainer = Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(Distiller(mlp(8), mlp(32)), Data())
