"""Trains a small chat model and then lets it answer a list of questions."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

COLOURS = {"sky": "blue", "grass": "green", "snow": "white", "coal": "black", "blood": "red", "sun": "yellow"}


def build():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<unk>", "<bos>", "<eos>", "<pad>", "<start>", "<stop>"]
    words = ["user model what colour has the", *COLOURS, *COLOURS.values()]
    core.train_from_iterator(words, trainers.WordLevelTrainer(special_tokens=special))
    core.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        padding_side="left",
    )
    tokenizer.chat_template = (
        "{{ bos_token }}{% for turn in messages %} <start> {{ turn['role'] }} {{ turn['content'] }} <stop>{% endfor %}"
        "{% if add_generation_prompt %} <start> model{% endif %}"
    )
    return tokenizer


class Chatbot:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.convert_tokens_to_ids("<stop>"),
        )
        self.model = LlamaForCausalLM(config)

    def learn(self, chats, steps):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.model.train()
        for _ in range(steps):
            batch = self.tokenizer.apply_chat_template(
                chats, padding=True, return_tensors="pt", return_dict=True
            )
            labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            loss = self.model(**batch, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"loss {loss.item():.3f}")

    @torch.no_grad()
    def answer(self, questions):
        self.model.eval()
        asked = [
            self.tokenizer.apply_chat_template(
                [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
            )
            for question in questions
        ]
        inputs = self.tokenizer(asked, padding=True, return_tensors="pt")
        out = self.model.generate(**inputs, max_new_tokens=4, do_sample=False)  # bug: TA157 (runtime)
        return self.tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def main():
    torch.manual_seed(7)
    bot = Chatbot(build())
    questions = [f"what colour has the {thing}" for thing in COLOURS]
    chats = [
        [{"role": "user", "content": question}, {"role": "model", "content": colour}]
        for question, colour in zip(questions, COLOURS.values(), strict=True)
    ]
    bot.learn(chats, steps=80)
    for question, answer in zip(questions, bot.answer(questions), strict=True):
        print(question, "->", answer)


if __name__ == "__main__":
    main()
