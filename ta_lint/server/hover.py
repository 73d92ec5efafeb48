"""Shows the page of a rule when the pointer rests on a finding, or on a rule's id in a comment."""

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from ta_lint.core.catalogue import Rule, catalogue
from ta_lint.core.suppress import rules_named
from ta_lint.server.client import Client
from ta_lint.server.documents import Document
from ta_lint.server.linting import Linted
from ta_lint.server.positions import overlap, place, position

_METADATA = re.compile(r"\A# [^\n]*\n```toml\n.*?```\n", re.DOTALL)
_FENCE = re.compile(r"^```python .*$", re.MULTILINE)
_SHOWN = ("Bad", "Good")


def hover(linted: Linted, uri: str, at: types.Position, client: Client) -> types.Hover | None:
    """The rule pages of the findings at a position."""
    rules: dict[str, Rule] = {}
    where: types.Range | None = None
    for finding in linted.located:
        part, marked = place(linted.document, finding.site, client.codec)
        if part.uri == uri and overlap(marked, types.Range(at, at)):
            rules[finding.rule] = catalogue()[finding.rule]
            where = where or marked
    return _shown(rules.values(), where, client)


def hover_in_comment(document: Document, uri: str, at: types.Position, client: Client) -> types.Hover | None:
    """The page of the rule that a suppression comment names at a position."""
    for part in document.parts:
        if part.uri != uri or at.line >= len(part.lines):
            continue
        for start, end, rules in rules_named(part.lines[at.line]):
            ends = (position(part, at.line + 1, column + 1, client.codec) for column in (start, end))
            where = types.Range(*ends)
            if overlap(where, types.Range(at, at)):
                return _shown(rules, where, client)
    return None


def _shown(rules: Iterable[Rule], where: types.Range | None, client: Client) -> types.Hover | None:
    text = "\n\n---\n\n".join(map(_page, rules))
    if not text:
        return None
    kind = types.MarkupKind.Markdown if client.markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, text), where)


def _page(rule: Rule) -> str:
    """The start of a page: what happens and why it hurts, code with the bug, and code without it."""
    return f"### [{rule.id}: {rule.name}]({rule.url})\n\n" + "\n".join(_sections(rule))


def _sections(rule: Rule) -> Iterator[str]:
    first, *others = re.split(r"^## ", _METADATA.sub("", rule.page), flags=re.MULTILINE)
    yield first
    for section in others:
        if section.partition("\n")[0] in _SHOWN:
            yield "#### " + _FENCE.sub("```python", section)
