"""The values of literals, which are those of Python."""

import ast
import gc

import libcst as cst
import pytest

from ta_lint.syntax.tree import evaluated

LITERALS = [
    *("1", "00", "1_000", "0xFF", "0b11", "0o17", "1.5", "1e-3", "1_0.5e3", ".5", "5."),
    *("''", '""', '""""""', "'a'", '"a\'b"', "'''a\nb'''", "'\\n'", "'''a\\\r\nb'''", "r'\\d'", "u'x'", "b'x'", "'é'"),
    *("'a' 'b' 'c'", "'a' '\\t'", "b'a' b'c'"),
]  # fmt: skip


@pytest.mark.parametrize("text", LITERALS)
def test_a_literal_has_the_value_that_python_gives_it(text: str) -> None:
    literal = cst.parse_expression(text)
    assert isinstance(literal, (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString))
    found, expected = evaluated(literal), ast.literal_eval(text)
    assert (found, type(found)) == (expected, type(expected))


def test_strings_with_an_f_string_among_them_have_no_value() -> None:
    literal = cst.parse_expression("'a' f'{b}'")
    assert isinstance(literal, cst.ConcatenatedString)
    assert evaluated(literal) is None


def test_evaluating_numbers_and_strings_leaves_no_garbage() -> None:
    """While files are linted the collector is paused, so cycles would stay."""
    literals = [cst.parse_expression(text) for text in ("1", "0.5", "'weight_decay'", "'a\\n'", "'a' 'b'")]
    gc.collect()
    gc.disable()
    try:
        for literal in literals * 100:
            evaluated(literal)  # type: ignore[call-overload]
        assert gc.collect() < 100
    finally:
        gc.enable()
