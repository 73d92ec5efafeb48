"""What a preflight shows of the batch of a language model: its rows as text, and what the loss learns from."""

import gc
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pytest
import torch
import torch.nn.functional as F
from test_contracts_language import llama, tokenizer
from test_preflight import flown
from tokenizers import Tokenizer, models
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForTokenClassification,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

from ta_lint.core.finding import Finding, Severity, Site
from ta_runtime.preflight import page, text
from ta_runtime.preflight.briefing import Briefing
from ta_runtime.preflight.reading import Piece, Reading

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUESTIONS = ["the cat sat on", "dogs run over", "the hills and", "saw a"]
ANSWERS = ["a mat", "green hills", "the green mat saw dogs", "cat"]


@pytest.fixture(autouse=True)
def _no_tokenizer_of_another_test() -> None:
    gc.collect()


def read(run: Callable[[], object]) -> list[Reading]:
    """What the first call of a model was given to read, when this trains."""
    return told(run).entrances[0].readings


def told(run: Callable[[], object]) -> Briefing:
    _, (briefing,), audit = flown(lambda: {"nothing": run() is None})
    assert not [finding.message for finding in audit.findings if finding.rule == "TA000"]
    return briefing


def roles(row: list[Piece]) -> list[tuple[str, str]]:
    return [(piece.text.strip(), piece.role) for piece in row]


def answering(known: Any) -> dict[str, Tensor]:
    """Questions with answers, of which the answers alone are to be learned, padded on the right."""
    questions = [known(question)["input_ids"] for question in QUESTIONS]
    answers = [known(f"{answer} <eos>", add_special_tokens=False)["input_ids"] for answer in ANSWERS]
    rows = [[*question, *answer] for question, answer in zip(questions, answers, strict=True)]
    width = max(map(len, rows))
    batch = known.pad({"input_ids": rows}, return_tensors="pt")
    labels = torch.full((len(rows), width), -100)
    for number, (question, row) in enumerate(zip(questions, rows, strict=True)):
        labels[number, len(question) : len(row)] = torch.tensor(row[len(question) :])
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "labels": labels}


def step(model: nn.Module, loss: Callable[[], Tensor]) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss().backward()
    optimizer.step()


# -- what is read -----------------------------------------------------------------------------------------------------


def test_a_loop_by_hand_shows_what_is_learned_from_what_is_masked_and_what_is_padding() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        batch = answering(known)
        step(model, lambda: model(**batch).loss)

    [found] = read(train)
    assert (found.name, found.rows, found.tokens) == ("input_ids", 4, 40)
    assert (found.learned, found.padding, found.learned_padding) == (3 + 3 + 6 + 2, 10, 0)
    assert (found.special, found.joints, found.idle) == (8, 0, 0)
    assert list(found.shown) == [0, 1, 2]
    assert roles(found.shown[0]) == [
        ("<bos>", "masked"),
        ("the cat sat on", "masked"),
        ("a mat", "learned"),
        ("<eos>", "learned"),
        ("<pad>", "padding"),
    ]
    assert [piece.tokens for piece in found.shown[0]] == [1, 4, 2, 1, 2]


def test_a_trainer_shows_what_its_collator_made(tmp_path: Path) -> None:
    def train() -> None:
        known = tokenizer()
        arguments = TrainingArguments(
            str(tmp_path), max_steps=1, report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True
        )
        collate = DataCollatorForLanguageModeling(known, mlm=False)
        rows = [known(f"{answer} <eos>") for answer in ANSWERS * 2]
        Trainer(llama(), arguments, train_dataset=rows, data_collator=collate).train()

    [found] = read(train)
    assert found.rows == 8
    for row in found.shown.values():
        assert roles(row)[0] == ("<bos>", "masked")  # nothing comes before it that could predict it
        assert {role for _, role in roles(row)[1:]} <= {"learned", "padding"}
        assert ("<eos>", "learned") in roles(row)
    assert found.learned + found.padding + 8 == found.tokens


def tune(folder: Path, rows: list[dict[str, str]], **options: Any) -> None:
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    arguments = SFTConfig(
        str(folder),
        max_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        **options,
    )
    SFTTrainer(
        llama(), arguments, train_dataset=Dataset.from_list(rows), processing_class=tokenizer()
    ).train()


def test_an_sft_trainer_shows_that_it_learns_from_completions_alone(tmp_path: Path) -> None:
    rows = [
        {"prompt": question, "completion": f" {answer}"}
        for question, answer in zip(QUESTIONS, ANSWERS, strict=True)
    ]
    [found] = read(lambda: tune(tmp_path, rows, per_device_train_batch_size=4))
    learned = {
        " ".join(text for text, role in roles(row) if role == "learned") for row in found.shown.values()
    }
    assert learned < {f"{answer} <eos>" for answer in ANSWERS}
    assert len(learned) == 3


def test_packed_texts_are_parted_where_their_positions_begin_anew(tmp_path: Path) -> None:
    rows = [{"text": answer} for answer in ANSWERS * 4]
    [found] = read(lambda: tune(tmp_path, rows, packing=True, max_length=12, per_device_train_batch_size=2))
    texts: list[list[str]] = [[]]
    for piece in found.shown[0]:
        if piece.begins:
            texts.append([])
        texts[-1].append(piece.text)
    assert len(texts) > 2
    assert {" ".join(" ".join(text).split()) for text in texts} <= {
        f"<bos> {answer} <eos>" for answer in ANSWERS
    }
    assert found.joints == len(texts) - 1
    assert not found.padding


def test_texts_that_follow_one_another_without_positions_are_parted_at_their_end_tokens() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        ids = known("the cat <eos> <bos> dogs run <eos> a mat <eos>", return_tensors="pt")["input_ids"]
        step(model, lambda: model(input_ids=ids, labels=ids.clone()).loss)

    [found] = read(train)
    assert [piece.text.strip() for piece in found.shown[0] if piece.begins] == ["<bos>", "a mat"]


class Own(nn.Module):
    """A model of the script's own, which gives scores and no loss."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(32, 8), nn.Linear(8, 32)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        scores: Tensor = self.head(self.table(input_ids))
        return scores


@pytest.mark.parametrize("shifted", ["by the loop", "by the data"])
def test_a_loss_that_the_loop_computes_says_what_is_learned(shifted: str) -> None:
    def train() -> None:
        known, model = tokenizer(), Own()
        batch = answering(known)
        ids, labels = batch["input_ids"], batch["labels"]
        if shifted == "by the loop":
            step(
                model,
                lambda: F.cross_entropy(model(ids)[:, :-1].reshape(-1, 32), labels[:, 1:].reshape(-1)),
            )
        else:
            targets = F.pad(labels[:, 1:], (0, 1), value=-1).masked_fill(labels.roll(-1) == -100, -1)
            step(model, lambda: F.cross_entropy(model(ids).transpose(1, 2), targets, ignore_index=-1))

    [found] = read(train)
    assert found.learned == 3 + 3 + 6 + 2
    assert ("a mat", "learned") in roles(found.shown[0])


def test_targets_that_are_no_tokens_of_the_rows_do_not_say_what_is_learned() -> None:
    def train() -> None:
        batch, model = answering(known := tokenizer()), Own()
        targets = torch.randint(0, 32, batch["labels"].shape, generator=torch.Generator().manual_seed(1))
        step(model, lambda: F.cross_entropy(model(**inputs(batch)).transpose(1, 2), targets))
        assert known

    [found] = read(train)
    assert not found.labelled
    assert {role for row in found.shown.values() for _, role in roles(row)} == {"masked", "padding"}


def inputs(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def test_padding_that_is_learned_from_is_told_apart() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        batch = answering(known)
        step(model, lambda: model(**inputs(batch), labels=batch["input_ids"]).loss)

    [found] = read(train)
    assert (found.padding, found.learned_padding) == (0, 10)
    assert roles(found.shown[0])[-1] == ("<pad>", "leaking")


def test_a_row_with_nothing_to_learn_is_among_those_that_are_shown() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        batch = answering(known)
        batch["labels"][3, 1:] = -100
        batch["labels"][3, 0] = 1  # the model shifts: nobody predicts the first token
        step(model, lambda: model(**batch).loss)

    [found] = read(train)
    assert (found.idle, list(found.shown)) == (1, [0, 1, 3])


BERT: dict[str, Any] = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
TAGS: dict[str, Any] = {**BERT, "num_labels": 9}


def test_where_masked_tokens_are_to_be_learned_these_are_shown() -> None:
    def train() -> None:
        known, model = (
            tokenizer(mask_token="<unk>"),
            BertForMaskedLM(BertConfig(**BERT)),
        )
        ids = known("the cat sat", return_tensors="pt")["input_ids"]
        masked, labels = ids.clone(), torch.full_like(ids, -100)
        masked[0, 2], labels[0, 2] = known.mask_token_id, ids[0, 2]
        step(model, lambda: model(input_ids=masked, labels=labels).loss)

    [found] = read(train)
    [other] = [piece for piece in found.shown[0] if piece.learned]
    assert (other.text, other.label) == ("<unk>", "cat")


def test_tags_of_tokens_are_not_read_as_tokens() -> None:
    def train() -> None:
        known = tokenizer()
        model = BertForTokenClassification(BertConfig(**TAGS))
        ids = known("the cat sat", return_tensors="pt")["input_ids"]
        step(model, lambda: model(input_ids=ids, labels=torch.tensor([[-100, 0, 7, 8]])).loss)

    [found] = read(train)
    assert roles(found.shown[0]) == [("<bos>", "masked"), ("the cat sat", "learned")]
    assert not any(piece.label for piece in found.shown[0])


def test_labels_that_the_data_has_shifted_are_put_in_the_place_of_their_tokens() -> None:
    class Scored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own = Own()

        def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(self.own(input_ids).flatten(0, 1), labels.flatten())

    def train() -> None:
        known, model = tokenizer(), Scored()
        batch = answering(known)
        ids, labels = batch["input_ids"], F.pad(batch["labels"][:, 1:], (0, 1), value=-100)
        step(model, lambda: model(ids, labels))

    [found] = read(train)
    assert ("a mat", "learned") in roles(found.shown[0])
    assert found.learned == 3 + 3 + 6 + 2


def test_what_a_decoder_of_its_own_is_to_say_is_read_beside_what_the_encoder_is_given() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    def train() -> None:
        sizes: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
        sizes |= {"vocab_size": 32, "decoder_start_token_id": 3}
        model = T5ForConditionalGeneration(T5Config(**sizes))
        known = tokenizer()
        asked = known(QUESTIONS, padding=True, return_tensors="pt")
        said = known(ANSWERS, padding=True, return_tensors="pt")
        labels = said["input_ids"].masked_fill(said["attention_mask"] == 0, -100)
        given = {name: asked[name] for name in ("input_ids", "attention_mask")}
        step(model, lambda: model(**given, labels=labels).loss)

    question, answer = read(train)
    assert (question.name, question.labelled, answer.name, answer.labelled) == (
        "input_ids",
        False,
        "labels",
        True,
    )
    assert roles(question.shown[1]) == [
        ("<bos>", "masked"),
        ("dogs run over", "masked"),
        ("<pad>", "padding"),
    ]
    assert roles(answer.shown[0]) == [("<bos>", "learned"), ("a mat", "learned"), ("#-100", "padding")]


def test_a_long_row_is_shown_in_parts() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        ids = known(" ".join(["the cat sat on a mat"] * 50), return_tensors="pt")["input_ids"]
        step(model, lambda: model(input_ids=ids, labels=ids.clone()).loss)

    [found] = read(train)
    row = found.shown[0]
    assert sum(piece.tokens for piece in row) == found.tokens == 301
    assert [piece.tokens for piece in row if piece.left_out] == [300 - 32 - 16]
    assert row[-1].text.endswith("the cat sat on a mat")


# -- what is not ------------------------------------------------------------------------------------------------------


def test_ids_that_no_tokenizer_reads_are_not_shown() -> None:
    def train() -> None:
        batch = answering(tokenizer())  # which is gone by now
        gc.collect()
        model = llama()
        step(model, lambda: model(**batch).loss)

    assert read(train) == []


def test_tokenizers_that_differ_on_what_the_ids_mean_are_told_of() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        backwards = dict(enumerate(sorted(known.get_vocab(), reverse=True)))
        table = models.WordLevel({word: number for number, word in backwards.items()}, "<unk>")
        other = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(table))
        batch = answering(known)
        step(model, lambda: model(**batch).loss)
        assert other

    briefing = told(train)
    assert briefing.entrances[0].readings == []
    assert any(
        "the tokenizers of the script read it in different ways" in line for line in briefing.not_tried
    )


def test_the_tokenizer_that_the_model_was_loaded_with_reads_its_ids() -> None:
    def train() -> None:
        known, model = tokenizer(), llama()
        other = tokenizer(pad_token="<unk>")
        known.name_or_path = model.name_or_path = "tiny"
        batch = answering(known)
        step(model, lambda: model(**batch).loss)
        assert other

    [found] = read(train)
    assert found.tokenizer == "tiny"


def test_a_batch_without_ids_has_no_reading() -> None:
    def train() -> None:
        known, model = tokenizer(), nn.Linear(4, 2)
        step(model, lambda: model(torch.randn(3, 4)).sum())
        assert known

    assert read(train) == []


# -- how it is shown --------------------------------------------------------------------------------------------------


def briefing_of(*row: Piece, **counts: Any) -> Briefing:
    from ta_runtime.preflight.briefing import Entrance

    counts = {"rows": 1, "tokens": sum(piece.tokens for piece in row), "labelled": True, **counts}
    reading = Reading("input_ids", "", shown={0: list(row)}, **counts)
    return Briefing("train.py", entrances=[Entrance("Model", "train.py", 1, readings=[reading])])


SEVERAL = (
    Piece("<bos>", special=True),
    Piece("Say it.\nNow:", 5),
    Piece(" yes", learned=True),
    Piece("<eos>", learned=True, special=True),
    Piece("再见", 2, learned=True, begins=True),
    Piece("<pad>", 3, padding=True, special=True),
)


def test_signs_below_the_text_say_without_colours_what_is_learned() -> None:
    shown = text.rendered(briefing_of(*SEVERAL), Path()).splitlines()
    at = next(number for number, line in enumerate(shown) if line.startswith("    row 0"))
    assert shown[at : at + 3] == [
        "    row 0  [<bos>]Say it.↵Now: yes[<eos>]|再见[<pad>]×3",
        "                              ^^^^^^^^^^^ ^^^^---------",
        "    ^ learned from   - padding   [ ] special token   | another text begins",
    ]


def test_colours_add_nothing_but_colours() -> None:
    plain = text.rendered(briefing_of(*SEVERAL), Path())
    colored = text.rendered(briefing_of(*SEVERAL), Path(), color=True)
    assert "\033[" not in plain
    assert "\033[32m yes\033[0m" in colored
    assert re.sub(r"\033\[[\d;]*m", "", colored) == plain


def test_a_long_row_is_wrapped_and_each_line_has_its_signs() -> None:
    row = (Piece("a" * 150, 75), Piece("b" * 60, 30, learned=True))
    lines = text.rendered(briefing_of(*row), Path()).splitlines()
    assert max(map(len, lines)) <= 100
    above, below = (
        number for number, line in enumerate(lines) if line.strip(" ") and set(line.strip()) == {"^"}
    )
    for number in (above, below):
        assert lines[number].count("^") == lines[number - 1].count("b")


def test_what_a_text_says_neither_moves_the_cursor_nor_is_markup() -> None:
    hostile = Piece("\033[31m<script>alert(1)</script>\u202e\r", 4, learned=True)
    plain = text.rendered(briefing_of(hostile), Path(), color=True)
    assert "\033[31m" not in plain
    assert "\u202e" not in plain
    html = page.as_html(briefing_of(hostile), [], Path())
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert not {"\033", "\u202e"} & set(html)


def test_the_page_has_the_findings_with_their_lines() -> None:
    site = Site("train.py", 3, 1, 3, 2)
    html = page.as_html(Briefing("train.py"), [Finding("TA301", "scale `<x>`", Severity.ERROR, site)], Path())
    assert "TA301 error</span> scale <code>&lt;x&gt;</code>" in html
    assert "train.py:3</code>" in html
    assert "<p>None.</p>" in page.as_html(Briefing("train.py"), [], Path())


# -- the command ------------------------------------------------------------------------------------------------------

DOCS = (Path(__file__).parents[1] / "docs/preflight.md").read_text(encoding="utf-8")
SCRIPT, SHOWN = (re.findall(pattern, DOCS, re.DOTALL)[0] for pattern in (
    r"```python title=tune.py\n(.*?)```", r"\$ ta-runtime preflight --page preflight.html tune.py\n(.*?)```"))  # fmt: skip
NUMBER = re.compile(r"\d+\.\d+|\d+ steps?")
"""Seconds, and what kernels round in their own ways."""


def preflight(folder: Path, *words: str, **environment: str) -> commands.Ran:
    (folder / "tune.py").write_text(SCRIPT, encoding="utf-8")
    return commands.ta_runtime(folder, "preflight", *words, "tune.py", timeout=300, **environment)


def test_the_page_of_the_documentation_shows_what_the_command_prints(tmp_path: Path) -> None:
    ran = preflight(tmp_path, "--page", "preflight.html")
    assert NUMBER.sub("N", ran.stdout) == NUMBER.sub("N", SHOWN), ran.stderr
    html = (tmp_path / "preflight.html").read_text(encoding="utf-8")
    for line in SHOWN.splitlines():
        if line.startswith(("  input_ids as text", "  4 rows")) or " is given" in line:
            assert line.strip().partition(" (tune")[0] in re.sub(r"<[^>]+>", "", html)
    assert "default-src 'none'; script-src 'none'" in html
    assert "<script" not in html


def test_colours_are_for_a_terminal_or_for_who_asks_for_them(tmp_path: Path) -> None:
    asked = preflight(tmp_path, FORCE_COLOR="1", NO_COLOR="")
    assert "\033[32m" in asked.stdout
    assert "\033[" not in preflight(tmp_path, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_page_that_cannot_be_written_is_known_before_the_script_runs(tmp_path: Path) -> None:
    ran = preflight(tmp_path, "--page", "nowhere/preflight.html")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "cannot write nowhere/preflight.html: there is no folder" in ran.stderr


def test_the_page_fits_a_phone_in_light_and_dark_and_asks_nobody(tmp_path: Path) -> None:
    if CHROMIUM is None:
        assert not os.environ.get("CI"), "install chromium"
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    file = tmp_path / "preflight.html"
    file.write_text(page.as_html(briefing_of(*SEVERAL, Piece("x" * 400, 9)), [], Path()), encoding="utf-8")
    requests, colors = [], set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            shown = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
            shown.on("request", lambda request: requests.append(request.url))
            shown.goto(file.as_uri())
            assert shown.evaluate("document.documentElement.scrollWidth") <= 360
            assert shown.locator(".row .learned").first.inner_text().strip() == "yes"
            colors.add(shown.locator(".row .learned").first.evaluate("node => getComputedStyle(node).color"))
        browser.close()
    assert len(colors) == 2
    assert all(url.startswith(("file://", "data:")) for url in requests)
