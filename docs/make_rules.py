"""Makes `docs/rules.md`, and the table of ids in `docs/from-torchfix.md`, of the rule pages and `docs/rules.toml`.

`python docs/make_rules.py` writes them; with `--check` it only says whether they are up to date.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from ta_lint.core.catalogue import Rule, catalogue

DOCS = Path(__file__).resolve().parent
_MADE = re.compile(r"(?<=<!-- made by docs/make_rules.py -->\n).*?(?=<!-- end -->)", re.DOTALL)


def main() -> int:
    """Write the documents, or compare them; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make docs/rules.md and the table in docs/from-torchfix.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if one is stale")
    check = parser.parse_args().check
    stale = [path for path, text in documents() if not path.is_file() or path.read_text("utf-8") != text]
    for path, text in documents():
        if not check and path in stale:
            path.write_text(text, encoding="utf-8")
    if check and stale:
        names = ", ".join(path.name for path in stale)
        print(f"make_rules.py: stale: {names}; run python docs/make_rules.py", file=sys.stderr)
        return 1
    return 0


def documents() -> Iterator[tuple[Path, str]]:
    """Each document that is made, with its text."""
    data = tomllib.loads((DOCS / "rules.toml").read_text("utf-8"))
    yield DOCS / "rules.md", "\n".join(_rules_page(data)) + "\n"
    migration = DOCS / "from-torchfix.md"
    [torchfix] = [linter for linter in data["linter"] if linter["name"] == "TorchFix"]
    table = "\n".join(_linter(torchfix, fixes=True)) + "\n"
    yield migration, _MADE.sub(lambda _: table, migration.read_text("utf-8"))


def _rules_page(data: dict[str, Any]) -> Iterator[str]:
    rules = catalogue().values()
    on = sum(rule.default for rule in rules)
    yield "# Rules"
    yield ""
    yield "<!-- made by docs/make_rules.py from the rule pages and docs/rules.toml: edit those -->"
    yield ""
    yield f"{len(rules)} rules, {on} of them on by default; `--extend-select` adds others by id, prefix, name or tag."
    yield "Each page has bad and good code, and the limits of the rule. *source*: `ta-lint check` sees it; *run*: `ta_runtime`"
    yield "sees it. *not in tests*: test files are skipped, unless the setting [`tests`](linting.md#test-files) says otherwise."
    yield "`ta-lint rules TA6` lists them in a terminal, `ta-lint rules -f json` as JSON."
    for family, group in groupby(rules, lambda rule: rule.id[:3]):
        yield ""
        yield f"## {family}xx: {data['families'][family]}"
        yield ""
        yield from _table("rule", "what goes wrong", rows=map(_row, group))
    yield ""
    yield "## The rules of other linters"
    yield ""
    yield "Ids of other linters work wherever a rule is named: `--select TOR102`, `# noqa: B614`, `[tool.ta] ignore`,"
    yield "`ta-lint rule W5517`. *on*: a default rule. *opt-in*: only if selected. *on, run only*: the source cannot show it, and"
    yield "`ta_runtime` looks for it by default."
    for linter in data["linter"]:
        yield ""
        yield f"### {linter['title']}"
        yield ""
        yield linter["about"].strip()
        yield ""
        yield from _linter(linter)
    yield ""
    yield "## A review checklist"
    yield ""
    yield "The thirty points of a checklist for reviews of PyTorch code, each with its rule."
    yield "`ta-lint check --extend-select review` adds the rules that are a matter of opinion."
    yield ""
    rows = (
        (
            bullet["section"],
            bullet["says"],
            *_ours([catalogue()[rule] for rule in bullet["rules"]]),
            bullet.get("note", ""),
        )
        for bullet in data["bullet"]
    )
    yield from _table("", "point", "here", "state", "note", rows=rows)


def _row(rule: Rule) -> tuple[str, ...]:
    seen = " + ".join({"static": "source", "runtime": "run"}[observer] for observer in rule.observers)
    about = [rule.severity.value, seen]
    if not rule.default:
        about.append("opt-in")
    if not rule.tests:
        about.append("not in tests")
    if rule.fix != "none":
        about.append(f"{rule.fix} fix")
    return f"{_link(rule)} {rule.name}<br>*{', '.join(about)}*", rule.finds.replace("|", "\\|")


def _linter(linter: dict[str, Any], *, fixes: bool = False) -> Iterator[str]:
    """The rules of another linter and ours for them; with `fixes`, also which of them put things right."""
    rows = []
    for theirs in linter["rule"]:
        ours = [rule for rule in catalogue().values() if theirs["id"] in rule.also]
        row: tuple[str, ...] = (f"`{theirs['id']}`", theirs["finds"], *_ours(ours))
        if fixes:
            row += (theirs.get("fix", ""), ", ".join(rule.fix.replace("none", "") for rule in ours))
        rows.append((*row, theirs.get("note", "")))
    also = ("its fix", "our fix") if fixes else ()
    yield from _table(linter["name"], "finds", "here", "state", *also, "note", rows=rows)


def _ours(rules: list[Rule]) -> tuple[str, str]:
    """The links to rules, and the state of each, said once if they are alike."""
    return ", ".join(map(_link, rules)), ", ".join(dict.fromkeys(map(_state, rules)))


def _state(rule: Rule) -> str:
    default = "on" if rule.default else "opt-in"
    return default if "static" in rule.observers else f"{default}, run only"


def _link(rule: Rule) -> str:
    return f"[{rule.id}](../rules/{rule.stem}.md)"


def _table(*header: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield "".join(f"| {cell} " if cell else "| " for cell in row) + "|"


if __name__ == "__main__":
    raise SystemExit(main())
