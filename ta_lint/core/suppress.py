"""Comments and settings that take a finding out of the count, and the comments that no longer do."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ta_lint.core.catalogue import catalogue, specificity
from ta_lint.core.finding import Finding, Site, Suppression
from ta_lint.core.source import Comment, Source

# The form of flake8 and ruff: a bare noqa, or one with codes after a colon; it may follow other text in a comment.
# Rule names stand among the codes; after the first, a name has a hyphen and follows a comma, unlike a reason. Without
# the colon, `noqa TA401` would silence every rule: it is taken for what it says.
_NOQA = re.compile(
    r"""\#\s* (?P<ours>ta:\s*)? noqa\b (?: (?:\s*:\s* | \s+(?=TA\d))
        (?P<codes> [a-z][a-z0-9-]* (?: [,\s]+[a-z]+[0-9]+\b(?!-) | \s*,\s*[a-z0-9]+(?:-[a-z0-9]+)+ )* ) )?""",
    re.IGNORECASE | re.VERBOSE,
)
_OURS = re.compile(r"TA\d", re.IGNORECASE)


@dataclass
class _Directive:
    """One suppression comment; `used` collects the codes that suppressed something."""

    comment: Comment
    codes: tuple[str, ...]
    whole_file: bool
    used: set[str] = field(default_factory=set)

    def covers(self, finding: Finding) -> bool:
        if not self.codes:
            return True
        rule = catalogue()[finding.rule]
        matching = [code for code in self.codes if specificity(code, rule) >= 2]
        self.used.update(matching)
        return bool(matching)


def suppressed(
    findings: Iterable[Finding], source: Source, per_file: dict[str, str], enabled: frozenset[str]
) -> list[Finding]:
    """The findings of one file, marked; unused suppressions join them as TA002.

    A comment counts on the first or last line of the statement, and on the line of the finding itself.
    `per_file` maps rule ids to the `per-file-ignores` pattern that turns them off here.
    """
    directives = list(_directives(source))
    by_line = {directive.comment.line: directive for directive in directives if not directive.whole_file}
    whole_file = [directive for directive in directives if directive.whole_file]
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
    if "TA002" in enabled:
        for finding in _unused(directives, source, enabled):
            covered = "TA002" in per_file
            reason = Suppression(False, f"per-file-ignores: {per_file['TA002']}") if covered else None
            result.append(replace(finding, suppression=reason))
    return result


def _directives(source: Source) -> Iterable[_Directive]:
    if "noqa" not in source.text and "NOQA" not in source.text.upper():
        return
    for comment in source.comments:
        found = _NOQA.search(comment.text)
        if found is None:
            continue
        whole_file = found["ours"] is not None
        if whole_file and not comment.alone:
            continue
        codes = tuple(code for code in re.split(r"[,\s]+", found["codes"] or "") if code)
        yield _Directive(comment, codes, whole_file)


def _unused(directives: list[_Directive], source: Source, enabled: frozenset[str]) -> Iterable[Finding]:
    """Only codes of rules that the linter sees are judged: others may serve the run, or other tools."""
    rule = catalogue()["TA002"]
    for directive in directives:
        for code in directive.codes:
            named = [other for other in catalogue().values() if specificity(code, other) >= 2]
            ours = _OURS.match(code) is not None or any(code.lower() == other.name for other in named)
            judged = not named or any(other.id in enabled and "static" in other.observers for other in named)
            if (
                not ours
                or code in directive.used
                or not judged
                or any(other.id == rule.id for other in named)
            ):
                continue
            line, column, text, _ = directive.comment
            message = f"`noqa: {code}` suppresses nothing" if named else f"`noqa: {code}` names no rule"
            site = Site(source.path, line, column, line, column + len(text))
            yield Finding(rule.id, message, rule.severity, site)
