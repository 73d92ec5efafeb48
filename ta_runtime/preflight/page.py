"""A preflight as one page of HTML that needs nothing else: what the terminal shows, and the findings."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ta_lint.core.files import display
from ta_lint.core.finding import Finding
from ta_lint.core.report import grouped, places
from ta_lint.core.terminal import harmless
from ta_runtime.html import marked, page
from ta_runtime.preflight import words
from ta_runtime.preflight.briefing import Briefing
from ta_runtime.preflight.reading import Piece, Reading

_STYLE = """
body { max-width: 60rem }
h1 { font-size: 1.5rem; letter-spacing: 0; margin: 1rem 0 } h1 small { font-size: 1rem; font-weight: 400; color: var(--faint) }
h2 { font-size: 1rem; margin: 0 0 .5rem } h2 code, .faint { color: var(--faint); font-weight: 400 }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0 }
h3 { margin: 1rem 0 .25rem } section p, section pre { margin: .25rem 0 }
.tag { font-weight: 600 } .error { color: var(--error) } .warning { color: var(--warning) } .note { color: var(--note) }
.bars { color: var(--series-1); line-height: 1; overflow-x: auto }
.row { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; margin: .6rem 0 }
.row div { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .875em; white-space: pre-wrap; line-height: 1.9 }
.learned { background: var(--good-soft); color: var(--good); border-bottom: 2px solid var(--good) }
.padding { color: var(--faint); border-bottom: 2px dotted var(--faint) }
.leaking { background: var(--error-soft); color: var(--error); border-bottom: 2px double var(--error) }
.special { font-weight: 700 } .joint { color: var(--warning); font-weight: 700 }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: .875rem }
"""
_KEY = {"learned": "text", "padding": "text", "leaking": "text"}
"""What stands for the kinds that are told by colours and lines, and not by a sign in the text."""


def as_html(briefing: Briefing, findings: Sequence[Finding], root: Path) -> str:
    """The page, which fits a phone as well."""
    name = Path(briefing.script).name or "the script"
    return page(f"{name}: preflight", _STYLE, "\n".join(_body(briefing, findings, root, name)))


def _body(briefing: Briefing, findings: Sequence[Finding], root: Path, name: str) -> Iterator[str]:
    yield f"<h1>{escape(name)} <small>before its first step</small></h1>"
    yield f'<p class="faint">{briefing.until_first_step:.1f} s to its first step; looked at for {briefing.seconds:.1f} s</p>'
    yield _section("Findings", "", _findings(findings, root))
    for peeked in briefing.loaders:
        title, what = words.loader(peeked)
        lines = [what, *words.looked_into(peeked)]
        yield _section(title, _place(peeked.path, peeked.line, root), _paragraphs(lines))
    for call in briefing.entrances:
        tensors = "".join(
            f"<p>{escape(each.name)}: {escape(words.kind(each))}, {escape(words.content(each))}</p>"
            + (f'<pre class="bars">{words.bars(each.histogram)}</pre>' if each.histogram else "")
            for each in call.inputs
        )
        yield _section(
            words.entrance(call),
            _place(call.path, call.line, root),
            tensors + "".join(map(_reading, call.readings)),
        )
    for loss in briefing.aims:
        yield _section(
            words.aim(loss), _place(loss.path, loss.line, root), _paragraphs([words.targets(loss)])
        )
    if briefing.tried:
        yield _section("Tried on copies", "", _paragraphs(briefing.tried))
    if briefing.not_tried:
        yield _section("Not looked at", "", _paragraphs(briefing.not_tried))


def _section(title: str, place: str, html: str) -> str:
    where = f" <code>{escape(place)}</code>" if place else ""
    return f"<section><h2>{escape(title)}{where}</h2>{html}</section>"


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{marked(line)}</p>" for line in lines)


def _place(path: str, line: int, root: Path) -> str:
    return f"{display(root / path)}:{line}"


def _findings(findings: Sequence[Finding], root: Path) -> str:
    counting = grouped([finding for finding in findings if finding.counts])
    return "".join(_finding(alike, root) for alike in counting) or "<p>None.</p>"


def _finding(alike: list[Finding], root: Path) -> str:
    severity, where = alike[0].severity.value, places(alike, lambda path: display(root / path))
    return (
        f'<p><span class="tag {severity}">{escape(alike[0].rule)} {severity}</span> {marked(alike[0].message)} '
        f'<code class="faint">{escape(where)}</code></p>'
    )


# -- what a model reads ---------------------------------------------------------------------------------------


def _reading(read: Reading) -> str:
    rows = "".join(
        f'<div class="row"><span class="faint">row {number}</span><div>{"".join(map(_piece, row))}</div></div>'
        for number, row in read.shown.items()
    )
    key = "".join(f"<span>{_sign(*each)}</span>" for each in words.key(read))
    return (
        f"<h3>{escape(words.read(read))}</h3><p>{escape(words.learned(read))}</p>{rows}"
        f'<p class="key faint">{key}</p>'
    )


def _piece(piece: Piece) -> str:
    joint = '<span class="joint">|</span>' if piece.begins else ""
    kind = f"{piece.role} special" if piece.special else piece.role
    return f'{joint}<span class="{kind}">{escape(harmless(words.piece(piece)))}</span>'


def _sign(kind: str, sign: str, meaning: str) -> str:
    return f'<span class="{kind}">{_KEY.get(kind, sign)}</span> {meaning}'
