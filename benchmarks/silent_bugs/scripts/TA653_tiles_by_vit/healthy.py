"""Five kinds of satellite tiles: a vision transformer is adapted by LoRA in the Trainer."""

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, ViTModel, set_seed


class Tiles(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(count)
        self.kinds = torch.randint(5, (count,), generator=generator)
        noise = 0.4 * torch.randn(count, 3, 16, 16, generator=generator)
        colour = torch.tensor([[1.0, -1, 0], [-1, 1, 0], [0, -1, 1], [1, 1, -1], [-1, 0, 1]])
        self.pixels = noise + 0.5 * colour[self.kinds][:, :, None, None]

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        return {"pixel_values": self.pixels[index], "labels": self.kinds[index]}


def main():
    set_seed(53)
    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=16,
        patch_size=4,
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained("vit-tiny-patch4")

    model = ViTForImageClassification.from_pretrained("vit-tiny-patch4", num_labels=5)
    lora = LoraConfig(
        r=8,
        lora_alpha=16,
        target_modules=["q_proj", "v_proj"],
        lora_dropout=0.1,
        bias="none",
        modules_to_save=["classifier"],
    )
    model = get_peft_model(model, lora)
    arguments = TrainingArguments(
        "tiles",
        learning_rate=5e-3,
        per_device_train_batch_size=16,
        num_train_epochs=3,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Tiles(400), eval_dataset=Tiles(100))
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
