"""Orders in a snack bar: supervised fine-tuning on chats."""

import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

DISHES = "soup toast salad pie noodles rice".split()


def make_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="[unk]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["[unk]", "[bos]", "[eos]", "[pad]", "[guest]", "[waiter]"]
    words = ["i would like the please one and coming up", *DISHES]
    core.train_from_iterator(words, trainers.WordLevelTrainer(special_tokens=special))
    core.post_processor = processors.TemplateProcessing(single="[bos] $A", special_tokens=[("[bos]", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[unk]", bos_token="[bos]", eos_token="[eos]", pad_token="[pad]"
    )
    tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %} [guest] {{ m.content }} [eos]"
        "{% else %} [waiter] {{ m.content }} [eos]{% endif %}{% endfor %}"
    )
    return tokenizer


def orders(count):
    dice = random.Random(9)
    for _ in range(count):
        first, second = dice.sample(DISHES, 2)
        yield [
            {"role": "user", "content": f"i would like the {first} and {second} please"},
            {"role": "assistant", "content": f"one {first} one {second} coming up"},
        ]


def main():
    set_seed(57)
    tokenizer = make_tokenizer()
    rows = Dataset.from_dict({"messages": list(orders(320))})
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
    )
    settings = SFTConfig(
        output_dir="orders",
        max_length=48,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        learning_rate=1e-3,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    trainer = SFTTrainer(model=model, args=settings, train_dataset=rows, processing_class=tokenizer)
    trainer.train()


if __name__ == "__main__":
    main()
