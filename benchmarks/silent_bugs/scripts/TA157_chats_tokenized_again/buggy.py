"""Fine-tunes a small Llama on chats about the weather."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TOWNS = "oslo paris lima cairo tokyo quito".split()
SKIES = "sunny cloudy rainy windy foggy".split()
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|> ' + message['content'] + ' <|eot|> ' }}"
    "{% endfor %}"
)


def checkpoint(folder):
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<unk>", "<|begin|>", "<|eot|>", "<|pad|>", "<|user|>", "<|assistant|>"]
    core.train_from_iterator(
        ["weather in is it", *TOWNS, *SKIES], trainers.WordLevelTrainer(special_tokens=special)
    )
    core.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", 1)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        bos_token="<|begin|>",
        eos_token="<|eot|>",
        pad_token="<|pad|>",
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


def chats(count):
    for _ in range(count):
        town = TOWNS[int(torch.randint(len(TOWNS), ()))]
        sky = SKIES[int(torch.randint(len(SKIES), ()))]
        yield [
            {"role": "user", "content": f"weather in {town}"},
            {"role": "assistant", "content": f"it is {sky}"},
        ]


def main():
    torch.manual_seed(157)
    checkpoint("Llama-3.2-mini-instruct")
    tokenizer = AutoTokenizer.from_pretrained("Llama-3.2-mini-instruct")
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for step in range(80):
        texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in chats(16)]
        batch = tokenizer(  # bug: TA157 (static)
            texts, padding=True, truncation=True, max_length=64, return_tensors="pt"
        )
        labels = batch["input_ids"].clone()
        labels[batch["attention_mask"] == 0] = -100
        outputs = model(  # bug: TA157 (runtime)
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels
        )
        optimizer.zero_grad()
        outputs.loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {outputs.loss.item():.3f}")


if __name__ == "__main__":
    main()
