"""Riddles and answers in a chat format, for the Trainer."""

import random

from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from torch.utils.data import Dataset
from transformers import (
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

RIDDLES = {
    "what has keys but no locks": "a piano",
    "what gets wet while drying": "a towel",
    "what has one eye": "a needle",
}


def publish(folder):
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<unk>", "<s>", "</s>", "<pad>", "[INST]", "[/INST]"]
    core.train_from_iterator(
        [*RIDDLES, *RIDDLES.values(), "tell me please"], trainers.WordLevelTrainer(special_tokens=special)
    )
    core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    tokenizer.chat_template = (
        "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
        "{{ ' [INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ ' ' + message['content'] + eos_token }}"
        "{% endif %}{% endfor %}"
    )
    tokenizer.save_pretrained(folder)


class Riddles(Dataset):
    def __init__(self, tokenizer, count):
        self.tokenizer = tokenizer
        dice = random.Random(count)
        self.pairs = [dice.choice(list(RIDDLES.items())) for _ in range(count)]

    def __len__(self):
        return len(self.pairs)

    def encode(self, messages):
        text = self.tokenizer.apply_chat_template(messages, tokenize=False)
        return self.tokenizer(text, truncation=True, max_length=64)  # bug: TA157 (static)

    def __getitem__(self, index):
        question, answer = self.pairs[index]
        return self.encode([{"role": "user", "content": question}, {"role": "assistant", "content": answer}])


def main():
    set_seed(17)
    publish("mistral-riddles")
    tokenizer = AutoTokenizer.from_pretrained("mistral-riddles")
    config = MistralConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    trainer = Trainer(
        model=MistralForCausalLM(config),
        args=TrainingArguments(
            "riddles",
            per_device_train_batch_size=16,
            num_train_epochs=3,
            learning_rate=1e-3,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=Riddles(tokenizer, 320),
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()  # bug: TA157 (runtime)


if __name__ == "__main__":
    main()
