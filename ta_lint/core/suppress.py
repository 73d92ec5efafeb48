"""Comments and settings that suppress findings, and comments that no longer suppress anything."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ta_lint.core.catalogue import Rule, named, rule_of, specificity
from ta_lint.core.finding import Finding, Fix, Site, Suppression, TextEdit
from ta_lint.core.source import Source

if TYPE_CHECKING:
    from ta_lint.core.statements import Comment

# The syntax of flake8 and ruff: a bare noqa, or one with codes after a colon; it may follow other text in a comment.
# Rule names may stand among the codes; after the first code a name needs a hyphen and a comma before it, unlike a reason.
# `noqa TA401` without the colon would suppress every rule, so it is read as if it had the colon.
_NOQA = re.compile(
    r"""\#\s* (?P<ours>ta:\s*)? noqa\b (?: (?:\s*:\s* | \s+(?=TA\d))
        (?P<codes> [a-z][a-z0-9-]* (?: [,\s]+[a-z]+[0-9]+\b(?!-) | \s*,\s*[a-z0-9]+(?:-[a-z0-9]+)+ )* ) )?""",
    re.IGNORECASE | re.VERBOSE,
)
_OURS = re.compile(r"TA\d", re.IGNORECASE)
_CODE = re.compile(r"[^,\s]+")

_NEVER_SILENCED = (
    "TA000",
    "TA001",
    "TA002",
)  # about the check, the file and the comments themselves


@dataclass
class _Directive:
    """One suppression comment; `used` collects the codes that have suppressed something."""

    comment: "Comment"
    match: re.Match[str]
    codes: tuple[str, ...]
    whole_file: bool
    """Whether it is `# ta: noqa`, which has an effect on a line of its own."""
    used: set[str] = field(default_factory=set)

    def covers(self, finding: Finding) -> bool:
        if not self.codes:
            return True
        rule = rule_of(finding.rule)
        matching = [code for code in self.codes if specificity(code, rule) >= 2]
        self.used.update(matching)
        return bool(matching)


def suppressed(
    findings: Iterable[Finding], source: Source, per_file: dict[str, str], enabled: frozenset[str]
) -> list[Finding]:
    """The findings of one file with suppressed ones marked, plus a TA002 for each unused suppression.

    A comment applies on the first or last line of the statement, and on the line of the finding itself.
    `per_file` maps rule ids to the `per-file-ignores` pattern that turns them off for this file.
    """
    directives = list(_directives(source))
    by_line = {directive.comment.line: directive for directive in directives if not directive.whole_file}
    whole_file = [directive for directive in directives if directive.whole_file and directive.comment.alone]
    result = []
    for finding in findings:
        statement = source.statement_at(finding.site.line)
        lines = (finding.site.line, statement.line, statement.end_line)
        candidates = [*whole_file, *(by_line[line] for line in dict.fromkeys(lines) if line in by_line)]
        covering = [directive for directive in candidates if directive.covers(finding)]
        if covering:
            text = covering[0].comment.text
            finding = replace(finding, suppression=Suppression(in_source=True, justification=text))
        elif finding.rule in per_file:
            text = f"per-file-ignores: {per_file[finding.rule]}"
            finding = replace(finding, suppression=Suppression(in_source=False, justification=text))
        result.append(finding)
    crashed = any(
        finding.rule == "TA000" for finding in result
    )  # and may have found what a comment suppresses
    if "TA002" in enabled and not crashed:
        for finding in _unused(directives, source, enabled):
            covered = "TA002" in per_file
            reason = Suppression(False, f"per-file-ignores: {per_file['TA002']}") if covered else None
            result.append(replace(finding, suppression=reason))
    return result


def silencing(finding: Finding, source: Source) -> TextEdit | None:
    """The edit that adds a suppression comment to the finding's line, or to another line of its statement.

    None if no comment helps.
    """
    if finding.rule in _NEVER_SILENCED:
        return None
    statement = source.statement_at(finding.site.line)
    for line in dict.fromkeys((finding.site.line, statement.line, statement.end_line)):
        edit = _with_code(finding.rule, line, source)
        if not _still_open([finding], source, _with_comments(source, [edit])):
            return edit
    return None


def silenced(findings: Iterable[Finding], source: Source) -> tuple[Source, int, list[Finding]]:
    """The source with comments against findings, how many it took, and the findings that no comment suppresses.

    Comments are tried on all lines at once, as each try reads the whole source; what is left then, one by one.
    """
    pending = _still_open(findings, source, source)
    count, easy = 0, [finding for finding in pending if finding.rule not in _NEVER_SILENCED]
    while easy:
        batch = list({finding.site.line: finding for finding in reversed(easy)}.values())
        edited = _with_comments(source, [_with_code(one.rule, one.site.line, source) for one in batch])
        if failed := _still_open(batch, source, edited):
            easy = [finding for finding in easy if finding not in failed]
            continue
        count += len(batch)
        easy, pending = _still_open(easy, source, edited), _still_open(pending, source, edited)
        source = edited
    left = []
    for finding in pending:
        if not _still_open([finding], source, source):  # by the comment against another one in its statement
            continue
        edit = silencing(finding, source)
        if edit is None:
            left.append(finding)
        else:
            source, count = _with_comments(source, [edit]), count + 1
    return source, count, left


def _with_comments(source: Source, edits: Iterable[TextEdit]) -> Source:
    """The source after edits within lines, at most one of each line."""
    parts = list(map(str.__add__, source.lines, source.line_ends))
    for edit in edits:
        text = parts[edit.line - 1]
        parts[edit.line - 1] = text[: edit.column - 1] + edit.text + text[edit.end_column - 1 :]
    return replace(source, text="".join(parts))


def _still_open(findings: Iterable[Finding], source: Source, edited: Source) -> list[Finding]:
    """The findings that no comment suppresses in the edited source, or whose statement has become another one there.

    That is so of a comment in a string, and behind a backslash.
    """
    findings = list(findings)
    return [
        finding
        for finding, marked in zip(findings, suppressed(findings, edited, {}, frozenset()), strict=True)
        if marked.suppression is None
        or edited.statement_at(finding.site.line) != source.statement_at(finding.site.line)
    ]


def _with_code(rule: str, line: int, source: Source) -> TextEdit:
    """The edit that adds a rule to the suppression comment of a line, or a new comment at its end."""
    comment = next((comment for comment in source.comments if comment.line == line), None)
    found = _NOQA.search(comment.text) if comment is not None else None
    if comment is not None and found is not None and found["codes"]:
        end = comment.column + found.end("codes")
        return TextEdit(line, end, line, end, f", {rule}")
    text = source.lines[line - 1]
    return TextEdit(line, len(text.rstrip()) + 1, line, len(text) + 1, f"  # noqa: {rule}")


def rules_named(line: str) -> Iterator[tuple[int, int, list[Rule]]]:
    """The rules that a suppression comment on a line names, each with its start and end offset in the line."""
    found = _NOQA.search(line)
    if found is None or not found["codes"]:
        return
    start = found.start("codes")
    for code in _CODE.finditer(found["codes"]):
        yield start + code.start(), start + code.end(), list(named(code[0], 3))


def _directives(source: Source) -> Iterable[_Directive]:
    if "noqa" not in source.text and "NOQA" not in source.text.upper():
        return
    for comment in source.comments:
        found = _NOQA.search(comment.text)
        if found is None or (source.notebook is not None and source.notebook.is_refused(comment.line)):
            continue  # in a cell that is not Python, it may suppress what we cannot see
        whole_file = found["ours"] is not None
        codes = tuple(code for code in re.split(r"[,\s]+", found["codes"] or "") if code)
        yield _Directive(comment, found, codes, whole_file)


def _unused(directives: list[_Directive], source: Source, enabled: frozenset[str]) -> Iterable[Finding]:
    rule = rule_of("TA002")
    for directive in directives:
        line, column, text, alone = directive.comment
        site = Site(source.path, line, column, line, column + len(text))
        if directive.whole_file and not alone:
            message = (
                "`ta: noqa` has no effect behind code: write `noqa`, or put it on its own line for the file"
            )
            yield Finding(rule.id, message, rule.severity, site)
            continue
        unused = {
            code: named for code in directive.codes if (named := _named(code, directive, enabled)) is not None
        }
        if not unused:
            continue
        fix = _without(directive, set(unused), source)
        for code, named in unused.items():
            message = f"`noqa: {code}` suppresses nothing" if named else f"`noqa: {code}` names no rule"
            yield Finding(rule.id, message, rule.severity, site, fix=fix)


def _named(code: str, directive: _Directive, enabled: frozenset[str]) -> list[Rule] | None:
    """The rules that an unused code names, empty for an unknown code; None for a code that may be needed.

    Only codes of rules that the linter checks are judged: the run or another tool may need the others.
    """
    rules = named(code, 2)
    ours = _OURS.match(code) is not None or any(code.lower() == rule.name for rule in rules)
    judged = not rules or any(rule.id in enabled and "static" in rule.observers for rule in rules)
    itself = any(rule.id == "TA002" for rule in rules)
    return list(rules) if ours and judged and not itself and code not in directive.used else None


def _without(directive: _Directive, unused: set[str], source: Source) -> Fix:
    """The fix that removes unused codes; without any code left also the `noqa`, and the comment or line if then empty."""
    line, column, text, alone = directive.comment
    found = directive.match
    codes = [code for code in directive.codes if code not in unused]
    if codes:
        start, end = (column + offset for offset in found.span("codes"))
        separator = ", " if "," in found["codes"] else " "
        return Fix("remove what is unused", (TextEdit(line, start, line, end, separator.join(codes)),))
    before, after = text[: found.start()].rstrip(), text[found.end() :].lstrip(" \t:,")
    if before or after:
        kept = after if after.startswith("#") or not after else f"# {after}"
        blank = "  " if before and kept else ""
        end = column + len(text)
        rest = TextEdit(line, column + len(before), line, end, f"{blank}{kept}")
        return Fix("remove the unused suppression", (rest,))
    if not alone:
        start = len(source.lines[line - 1][: column - 1].rstrip()) + 1
        edit = TextEdit(line, start, line, column + len(text), "")
    elif source.line_ends[line - 1]:
        edit = TextEdit(line, 1, line + 1, 1, "")
    else:
        edit = TextEdit(line, 1, line, column + len(text), "")
    return Fix("remove the unused suppression", (edit,))
