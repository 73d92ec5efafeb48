"""Finds names in the text of a program without a parser."""

import re

# A comment, a string or a name; text inside the first two is no name.
TOKEN = re.compile(
    r"#[^\r\n]*+"
    r"|'''(?>(?:[^'\\]|\\.|'(?!''))*)'''|\"\"\"(?>(?:[^\"\\]|\\.|\"(?!\"\"))*)\"\"\""
    r"|'(?>(?:[^'\\\r\n]|\\.)*)'|\"(?>(?:[^\"\\\r\n]|\\.)*)\""
    r"|(?P<name>[^\W\d]\w*+)",
    re.DOTALL,
)
