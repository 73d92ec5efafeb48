"""The words of a file's code."""

from modules import module_of

from ta_lint.facts.values.words import words


def words_of(code: str) -> frozenset[str]:
    return words(module_of(code).tree)


def test_names_are_words_wherever_they_stand() -> None:
    assert words_of("import torch.optim as o\nx = f(device=o.SGD)\n") == {
        "torch",
        "optim",
        "o",
        "x",
        "f",
        "device",
        "SGD",
    }


def test_strings_say_words() -> None:
    assert words_of('x = "cuda:0"\n') == {"x", "cuda", "0"}
    assert words_of('x = f"cuda:{rank}"\n') >= {"cuda", "rank"}


def test_docstrings_and_comments_say_nothing() -> None:
    assert words_of('"""Runs on cuda."""\n\n\ndef run():  # on cuda\n    """On cuda."""\n') == {"run"}
