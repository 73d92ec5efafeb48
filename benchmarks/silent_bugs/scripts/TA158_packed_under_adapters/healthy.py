"""LoRA on short chats that are packed by hand, so that no computation goes into padding."""

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = "we meet at noon near big bridge and take some bread for lunch then go home by bus".split()
ROW = 64


def make_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(
        [" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=["<unk>", "</s>", "<pad>"])
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="</s>", pad_token="<pad>"
    )


def chats(tokenizer, count):
    for _ in range(count):
        start, length = int(torch.randint(len(WORDS), ())), int(torch.randint(5, 12, ()))
        text = " ".join((WORDS * 2)[start : start + length])
        yield tokenizer(text).input_ids + [tokenizer.eos_token_id]


def pack(tokenizer, count):
    """Rows of whole chats, filled up with padding."""
    rows, row, places = [], [], []
    for ids in chats(tokenizer, count):
        if len(row) + len(ids) > ROW:
            spare = ROW - len(row)
            rows.append(
                (
                    row + [tokenizer.pad_token_id] * spare,
                    places + list(range(spare)),
                    [1] * len(row) + [0] * spare,
                )
            )
            row, places = [], []
        row, places = row + ids, places + list(range(len(ids)))
    return [tuple(torch.tensor(part) for part in parts) for parts in rows]


def main():
    torch.manual_seed(18)
    tokenizer = make_tokenizer()
    base = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
    )
    model = get_peft_model(
        base, LoraConfig(task_type="CAUSAL_LM", r=8, target_modules=["q_proj", "k_proj", "v_proj"])
    )
    loader = DataLoader(pack(tokenizer, 900), batch_size=4, shuffle=True)
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-3)
    model.train()
    for epoch in range(3):
        for ids, places, real in loader:
            labels = ids.masked_fill(real == 0, -100)
            loss = model(input_ids=ids, position_ids=places, labels=labels, use_cache=False).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
