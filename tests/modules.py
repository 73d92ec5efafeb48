"""The facts about a piece of code, for tests that ask them without a rule."""

import libcst as cst

from ta_lint.core.source import Source
from ta_lint.facts import FileFacts


def module_of(text: str) -> FileFacts:
    return FileFacts.of(Source("example.py", text))


def call_in(module: FileFacts, code: str) -> cst.Call:
    """The first call that is written like this."""
    return next(call for call in module.tree.all(cst.Call) if module.code(call) == code)
