"""What is the marked word? T5 with LoRA on sentences in which a span stands between two marks."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import Dataset
from transformers import (
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

WORDS = "rain falls on old roofs while two cats sleep near warm stove ( )".split()
MARKS = ["<span>", "</span>"]


def checkpoint():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(
        [" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=["<pad>", "</s>", "<unk>"])
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    return tokenizer, T5ForConditionalGeneration(config)


class Marked(Dataset):
    def __init__(self, tokenizer, count):
        self.tokenizer, self.count = tokenizer, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        words = [WORDS[place] for place in torch.randint(len(WORDS) - 2, (8,), generator=generator).tolist()]
        at = int(torch.randint(8, (), generator=generator))
        text = " ".join([*words[:at], MARKS[0], words[at], MARKS[1], *words[at + 1 :]])
        row = self.tokenizer(text)
        row["labels"] = self.tokenizer(words[at] + " </s>").input_ids
        return row


def main():
    set_seed(15)
    tokenizer, model = checkpoint()
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS})
    model.resize_token_embeddings(len(tokenizer))
    lora = LoraConfig(task_type=TaskType.SEQ_2_SEQ_LM, r=4, lora_alpha=16, target_modules=["q", "v"])
    model = get_peft_model(model, lora)  # bug: TA155
    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            "spans",
            per_device_train_batch_size=16,
            num_train_epochs=3,
            learning_rate=1e-2,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=Marked(tokenizer, 320),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
    )
    trainer.train()


if __name__ == "__main__":
    main()
