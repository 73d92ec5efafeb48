"""A comparison as one page of HTML that needs nothing else: no script, no font, no image from anywhere."""

from collections.abc import Iterator
from html import escape

import pyarrow.compute as pc

from ta_runtime.diff import words
from ta_runtime.diff.comparison import Comparison, Divergence
from ta_runtime.html import page
from ta_runtime.runs.schema import KINDS

_COLUMNS = 48
"""Of the map; more steps share them."""

_STYLE = """
:root { --same: #b9cbd6; --part: #f5a524; --all: #c62a2f }
@media screen and (prefers-color-scheme: dark) { :root { --same: #3a4d59; --part: #d58a12; --all: #e5484d } }
body { max-width: 60rem }
h1 { font-size: 1.5rem; letter-spacing: 0; margin: 1rem 0 } h1.good { color: var(--good) } h1.bad { color: var(--error) }
h2 { font-size: 1rem; margin: 0 0 .5rem }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; } dt { color: var(--faint) }
.faint { color: var(--faint) }
.cause { border-left: .25rem solid var(--part); padding-left: .75rem; margin: .75rem 0 0 }
table { border-collapse: collapse; width: 100% } th { text-align: left; font-weight: 600 }
td, th { padding: .25rem .5rem .25rem 0; vertical-align: top; border-bottom: 1px solid var(--line) }
.map { display: grid; grid-template-columns: max-content 1fr; gap: 3px .6rem; align-items: center; font-size: .8rem }
.row { display: flex; gap: 1px; height: 1.1rem } .row i { flex: 1; background: transparent; border-radius: 1px }
.row .same { background: var(--same) } .row .part { background: var(--part) } .row .all { background: var(--all) }
.ends { display: flex; justify-content: space-between; color: var(--faint) }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; vertical-align: -1px; margin: 0 .2rem 0 .8rem }
"""


def as_html(comparison: Comparison) -> str:
    """The comparison as a page, which fits a phone as well."""
    title = words.headline(comparison)
    return page(title, _STYLE, "\n".join(_body(comparison, title)))


def _body(comparison: Comparison, title: str) -> Iterator[str]:
    yield f'<h1 class="{"good" if comparison.equal else "bad"}">{escape(title)}</h1>'
    compared = "The run whose ranks are compared" if comparison.across_ranks else "The two runs"
    yield f"<section><h2>{compared}</h2>{_list(_sides(comparison))}</section>"
    if comparison.settings:
        yield f"<section><h2>{words.SETTINGS}</h2>{_settings(comparison)}</section>"
    if comparison.numbers is not None:
        yield f"<section><h2>{words.NUMBERS}</h2>{_first(comparison, comparison.numbers)}</section>"
    if comparison.repeated:
        told = "".join(
            f"<p>{escape(words.repeated(each, comparison.ranks[0]))}</p>" for each in comparison.repeated
        )
        yield f"<section><h2>Ranks that train on the same batches</h2>{told}</section>"
    yield f"<section><h2>What is equal and what differs, step by step</h2>{_map(comparison)}</section>"
    if notes := words.notes(comparison):
        yield f"<section><h2>What is left out here</h2>{''.join(f'<p>{escape(note)}</p>' for note in notes)}</section>"


def _sides(comparison: Comparison) -> Iterator[tuple[str, str]]:
    if comparison.across_ranks:
        yield "run", words.about(comparison.a, " · ")
        yield "A, B", f"rank {comparison.ranks[0]}, and each of the others"
    else:
        yield "A", words.about(comparison.a, " · ")
        yield "B", words.about(comparison.b, " · ")


def _settings(comparison: Comparison) -> str:
    rows = "".join(
        f"<tr><td><span class=faint>{setting.kind}</span> <code>{escape(setting.name)}</code>{_when(setting.step)}</td>"
        f"<td><code>{escape(words.value(setting.a))}</code></td><td><code>{escape(words.value(setting.b))}</code></td></tr>"
        for setting in comparison.settings
    )
    first = comparison.first
    cause = (
        f'<p class="cause"><strong>Cause:</strong> {escape(first.cause)}</p>'
        if first is not None and first is not comparison.numbers
        else ""
    )
    return f"<table><tr><th>setting<th>A<th>B</tr>{rows}</table>{cause}"


def _when(step: int) -> str:
    return f' <span class="faint">from step {step}</span>' if step >= 0 else ""


def _first(comparison: Comparison, found: Divergence) -> str:
    entries = _list(words.first(comparison, found))
    return f'{entries}<p class="cause"><strong>Cause:</strong> {escape(words.cause(comparison, found))}</p>'


def _map(comparison: Comparison) -> str:
    """Of each kind a row, of some steps a column: how much of it differs."""
    steps = comparison.steps
    grid = comparison.grid.filter(pc.greater_equal(comparison.grid["step"], 0))
    if not steps:
        return "<p>Settings alone.</p>"
    width = -(-len(steps) // _COLUMNS)
    place = pc.divide(pc.index_in(grid["step"], value_set=pc.cast(steps, grid["step"].type)), width)
    cells = grid.append_column("column", place).group_by(["kind", "column"])
    sums = cells.aggregate([("compared", "sum"), ("differing", "sum")]).to_pylist()
    shares = {(row["kind"], row["column"]): (row["differing_sum"], row["compared_sum"]) for row in sums}
    rows = ""
    for kind in sorted({kind for kind, _ in shares}):
        marks = (_mark(shares.get((kind, column)), steps[column * width : (column + 1) * width])
                 for column in range(-(-len(steps) // width)))  # fmt: skip
        rows += f'<span>{words.NOUNS[KINDS[kind]][1]}</span><div class="row">{"".join(marks)}</div>'
    ends = f'<span></span><div class="ends"><span>step {steps[0]}</span><span>{steps[-1]}</span></div>'
    key = (
        '<p class="key faint"><i style="background:var(--same)"></i>equal<i style="background:var(--part)"></i>some differ'
        '<i style="background:var(--all)"></i>most differ</p>'
    )
    return f'<div class="map">{rows}{ends}</div>{key}'


def _mark(share: tuple[int, int] | None, steps: list[int]) -> str:
    if share is None:
        return "<i></i>"
    differing, compared = share
    kind = "same" if not differing else "part" if 2 * differing <= compared else "all"
    when = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"
    return f'<i class="{kind}" title="{when}: {differing} of {compared} differ"></i>'


def _list(entries: Iterator[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in entries)}</dl>"
