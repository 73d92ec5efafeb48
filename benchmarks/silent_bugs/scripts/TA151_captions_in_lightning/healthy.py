"""Captions of photographs, word by word, in Lightning."""

import lightning as L
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

WHO = ["a man", "a woman", "two children", "a brown dog", "an old couple"]
DOES = ["walks", "sits", "plays", "waits quietly", "runs fast"]
WHERE = ["on the beach", "in a park", "by the sea at dusk", "under trees", "at home"]
CAPTIONS = [f"{who} {does} {where}" for who in WHO for does in DOES for where in WHERE]


def caption_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.train_from_iterator(CAPTIONS, trainers.WordLevelTrainer(special_tokens=["<unk>", "<end>", "<pad>"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="<end>", pad_token="<pad>"
    )


class Captioner(L.LightningModule):
    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer
        self.model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=len(tokenizer),
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                use_cache=False,
            )
        )

    def training_step(self, batch, index):
        ids, mask = batch["input_ids"], batch["attention_mask"]
        labels = torch.where(ids == self.tokenizer.pad_token_id, -100, ids)
        loss = self.model(input_ids=ids, attention_mask=mask, labels=labels).loss
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def main():
    L.seed_everything(152)
    tokenizer = caption_tokenizer()

    def collate(captions):
        return tokenizer([caption + " <end>" for caption in captions], padding=True, return_tensors="pt")

    loader = DataLoader(CAPTIONS, batch_size=25, shuffle=True, collate_fn=collate)
    trainer = L.Trainer(
        max_epochs=20,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Captioner(tokenizer), loader)


if __name__ == "__main__":
    main()
