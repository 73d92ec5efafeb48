"""Questions about contracts: a small Llama answers from the text; only the answer is learnt."""

import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = "the tenant pays rent each month and deposit of two months is due before keys are handed over by landlord".split()
MAX_LENGTH = 48


def build_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<unk>", "<s>", "</s>", "<pad>", "question:", "answer:"]
    core.train_from_iterator([" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=special))
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


class Contracts(Dataset):
    def __init__(self, tokenizer, count):
        self.tokenizer = tokenizer
        dice = random.Random(count)
        self.rows = []
        for _ in range(count):
            contract = dice.choices(WORDS, k=dice.choice([20, 55, 60, 70]))
            self.rows.append((" ".join(contract), "question: rent", "answer: " + " ".join(contract[:4])))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        contract, question, answer = self.rows[index]
        context = self.tokenizer(contract, add_special_tokens=False).input_ids
        question = self.tokenizer(question, add_special_tokens=False).input_ids
        answer = self.tokenizer(answer + self.tokenizer.eos_token, add_special_tokens=False).input_ids
        prompt = context[: MAX_LENGTH - len(question) - len(answer)] + question
        ids = prompt + answer
        labels = [-100] * len(prompt) + answer
        return {"input_ids": ids, "labels": labels}


def collate(rows, pad):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [pad] * (longest - len(row["input_ids"])) for row in rows])
    labels = torch.tensor([row["labels"] + [-100] * (longest - len(row["labels"])) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != pad).long(), "labels": labels}


def main():
    torch.manual_seed(150)
    tokenizer = build_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    model = LlamaForCausalLM(config)
    loader = DataLoader(
        Contracts(tokenizer, 320),
        batch_size=2,
        shuffle=True,
        collate_fn=lambda rows: collate(rows, tokenizer.pad_token_id),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for batch in loader:
        loss = model(**batch).loss
        optimizer.zero_grad()
        if torch.isfinite(loss):
            loss.backward()
            optimizer.step()
    print(f"last loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
