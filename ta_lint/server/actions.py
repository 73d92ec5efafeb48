"""Code actions for findings: the fix of one, a comment that suppresses it, and all fixes of the file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from lsprotocol import types

from ta_lint.core.errors import Unreadable
from ta_lint.core.finding import Applicability, Finding, Fix, TextEdit
from ta_lint.core.suppress import silencing
from ta_lint.engine import located
from ta_lint.fixing import fix_file
from ta_lint.server.client import Client
from ta_lint.server.diagnostics import diagnostic
from ta_lint.server.documents import TextPart, lines_with_ends
from ta_lint.server.linting import Linted
from ta_lint.server.positions import overlap, part_of, place, position

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.ta-lint"
KINDS = (types.CodeActionKind.QuickFix.value, FIX_ALL)

_Edits = list[tuple[TextPart, types.TextEdit]]


def actions(linted: Linted, params: types.CodeActionParams, client: Client) -> list[types.CodeAction]:
    """The actions of the requested kinds for a range of a part."""
    uri, only = params.text_document.uri, params.context.only
    result: list[types.CodeAction] = []
    if _is_requested(types.CodeActionKind.QuickFix.value, only):
        for finding, there in zip(linted.findings, linted.located, strict=True):
            part, where = place(linted.document, there.site, client.codec)
            if part.uri == uri and overlap(where, params.range) and not _is_json(linted):
                result += _of_finding(finding, there, linted, client)
    if _is_requested(FIX_ALL, only) and any(_is_applied(finding, linted) for finding in linted.findings):
        result.append(_fix_all(linted, client))
    return result


def resolved(action: types.CodeAction, linted: Linted, client: Client) -> types.CodeAction:
    """The action on the whole file with its edit, which takes several lints to compute."""
    action.edit = _workspace_edit(_all_edits(linted, client), client)
    return action


def _is_requested(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a kind, or a kind above it, is requested; None requests all."""
    asked = [str(getattr(one, "value", one)) for one in only or [""]]
    return any(one in ("", kind) or kind.startswith(f"{one}.") for one in asked)


def _is_json(linted: Linted) -> bool:
    """Whether a notebook is open as JSON text, so that its lines are not those of the findings."""
    return linted.source.notebook is not None and not linted.document.has_cells


def _is_applied(finding: Finding, linted: Linted) -> bool:
    file = linted.settings.file
    return file is not None and finding.fix is not None and file.config.makes(finding.fix)


def _of_finding(
    finding: Finding, there: Finding, linted: Linted, client: Client
) -> Iterator[types.CodeAction]:
    about = [diagnostic(there, linted, client)]
    if there.fix is not None and linted.mends(finding):
        safe = there.fix.applicability is Applicability.SAFE
        yield types.CodeAction(
            title=f"{finding.rule}: {there.fix.title}{'' if safe else ' (unsafe)'}",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=about,
            is_preferred=safe,
            edit=_workspace_edit(_edits(there.fix.edits, linted, client), client),
        )
    comment = silencing(finding, linted.source)
    if comment is not None:
        (silenced,) = located([replace(finding, fix=Fix("", (comment,)))], linted.source)
        assert silenced.fix is not None
        yield types.CodeAction(
            title=f"{finding.rule}: ignore here",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=about,
            edit=_workspace_edit(_edits(silenced.fix.edits, linted, client), client),
        )


def _fix_all(linted: Linted, client: Client) -> types.CodeAction:
    assert linted.settings.file is not None
    which = "" if linted.settings.file.config.unsafe_fixes else "safe "
    action = types.CodeAction(title=f"ta-lint: fix all {which}problems of this file", kind=FIX_ALL)
    if client.resolves:
        action.data = linted.document.uri
        return action
    return resolved(action, linted, client)


def _all_edits(linted: Linted, client: Client) -> _Edits:
    """The edits that `ta-lint check --fix` would make."""
    file, document = linted.settings.file, linted.document
    if file is None:
        return []
    fixed = fix_file(file, frozenset(entry.fingerprint for entry in linted.settings.accepted))
    try:
        texts = document.texts(fixed.after)
    except Unreadable:
        return []
    return [
        (part, edit)
        for part, text in zip(document.parts, texts, strict=True)
        for edit in _difference(part, text, client)
    ]


def _difference(part: TextPart, text: str, client: Client) -> Iterator[types.TextEdit]:
    """One edit per run of changed lines, so that all other lines keep their folds and marks."""
    before, after = lines_with_ends(part.text), lines_with_ends(text)
    for what, start, end, new_start, new_end in SequenceMatcher(None, before, after, False).get_opcodes():
        if what != "equal":
            where = types.Range(*(_line_start(part, number, client) for number in (start, end)))
            yield types.TextEdit(where, "".join(after[new_start:new_end]))


def _line_start(part: TextPart, number: int, client: Client) -> types.Position:
    """The start of a line, counted from 0; for the line after the last, the end of the text."""
    if number < len(part.lines):
        return types.Position(number, 0)
    return position(part, len(part.lines), len(part.lines[-1]) + 1, client.codec)


def _edits(edits: Iterable[TextEdit], linted: Linted, client: Client) -> _Edits:
    result: _Edits = []
    for edit in edits:
        part = part_of(linted.document, edit.cell)
        start = position(part, edit.line, edit.column, client.codec)
        end = position(part, edit.end_line, edit.end_column, client.codec)
        result.append((part, types.TextEdit(types.Range(start, end), edit.text)))
    return result


def _workspace_edit(edits: _Edits, client: Client) -> types.WorkspaceEdit:
    """Edits for the linted versions of the texts; a client that supports versions refuses them for a changed text."""
    parts = {part.uri: part for part, _ in edits}
    of_part = {uri: [edit for part, edit in edits if part.uri == uri] for uri in parts}
    if not client.versions:
        return types.WorkspaceEdit(changes=dict(of_part))
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(uri, parts[uri].version), of_part[uri]
            )
            for uri in parts
        ]
    )
