"""The rule catalogue: one Markdown page per rule, read as it is."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import msgspec

from ta_lint.core.errors import UsageError
from ta_lint.core.finding import Severity

_ALWAYS = ("TA000", "TA001")

PAGES_URL = "https://github.com/ta-lint/ta-lint/blob/main/rules"

# The beginning of another tool's ids, such as `TOR1`. Of ids with one letter many tools have some, and `W5` is any of them.
_FOREIGN_PREFIX = re.compile(r"[A-Z]{2,}\d*")

_TITLE = re.compile(r"# (?P<id>TA\d{3}): (?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)\n")
_METADATA = re.compile(r"```toml\n(?P<toml>.*?)```\n", re.DOTALL)


class _Metadata(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    severity: Severity
    observers: list[Literal["static", "runtime"]]
    default: bool
    precision: Literal["very-high", "high", "medium", "low"]
    fix: Literal["safe", "unsafe", "none"]
    tags: list[str]
    since: str
    also: list[str] = []
    security_severity: float | None = None
    cwe: list[str] = []


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as its page describes it. `also` are the ids that other tools give the same pitfall."""

    id: str
    name: str
    severity: Severity
    observers: tuple[str, ...]
    default: bool
    precision: str
    fix: str
    tags: tuple[str, ...]
    since: str
    also: tuple[str, ...]
    security_severity: float | None
    cwe: tuple[str, ...]
    summary: str
    page: str

    @property
    def stem(self) -> str:
        return f"{self.id}-{self.name}"

    @property
    def url(self) -> str:
        return f"{PAGES_URL}/{self.stem}.md"


def rules_dir() -> Traversable:
    """Where the pages lie: inside the installed package, else in the checkout this file belongs to."""
    packaged = files("ta_lint") / "_rules"
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():  # a `rules` beside an installed package is somebody else's
        return checkout / "rules"
    raise FileNotFoundError("ta-lint was installed without its rule pages; install it again")


@cache
def catalogue() -> dict[str, Rule]:
    """Every rule by id, in order of id."""
    pages = sorted(
        (
            entry
            for entry in rules_dir().iterdir()
            if entry.name.startswith("TA") and entry.name.endswith(".md")
        ),
        key=lambda entry: entry.name,
    )
    rules = [parse_page(entry.name, entry.read_text(encoding="utf-8")) for entry in pages]
    return {rule.id: rule for rule in rules}


def parse_page(filename: str, page: str) -> Rule:
    """The rule that a page describes.

    Raises:
        ValueError: the page has no title, no or wrong metadata, or a name that is not its file's.
    """
    title = _TITLE.match(page)
    metadata = _METADATA.search(page)
    if title is None or metadata is None:
        raise ValueError(f"{filename}: a rule page starts with '# TAnnn: name' and a toml block")
    try:
        fields = msgspec.toml.decode(metadata["toml"], type=_Metadata)
    except msgspec.DecodeError as error:
        raise ValueError(f"{filename}: {error}") from error
    rule = Rule(
        id=title["id"],
        name=title["name"],
        severity=fields.severity,
        observers=tuple(fields.observers),
        default=fields.default,
        precision=fields.precision,
        fix=fields.fix,
        tags=tuple(fields.tags),
        since=fields.since,
        also=tuple(fields.also),
        security_severity=fields.security_severity,
        cwe=tuple(fields.cwe),
        summary=page[metadata.end() :].strip().partition("\n\n")[0].replace("\n", " "),
        page=page,
    )
    if filename != f"{rule.stem}.md":
        raise ValueError(f"{filename}: the title says {rule.stem}")
    return rule


def specificity(selector: str, rule: Rule) -> int:
    """How exactly a selector names a rule: 3 for an id, a name or an alias, 2 for a prefix, 1 for a tag or ALL, 0 not at all."""
    upper = selector.upper()
    lower = selector.lower()
    if upper == rule.id or lower == rule.name or lower in map(str.lower, rule.also):
        return 3
    if re.fullmatch(r"TA\d{0,2}", upper) and rule.id.startswith(upper):
        return 2
    if _FOREIGN_PREFIX.fullmatch(upper) and any(name.startswith(upper) for name in rule.also):
        return 2
    return 1 if upper == "ALL" or lower in rule.tags else 0


def selected(select: list[str] | None, extend: list[str], ignore: list[str], where: str) -> frozenset[str]:
    """The ids of the enabled rules: those selected, or without `select` the default ones, adjusted.

    Raises:
        UsageError: a selector names nothing; `where` says whose it is.
    """
    base = _ALWAYS if select is not None else [rule.id for rule in catalogue().values() if rule.default]
    return adjusted(frozenset(base), [*(select or []), *extend], ignore, where)


def adjusted(rules: frozenset[str], extend: list[str], ignore: list[str], where: str) -> frozenset[str]:
    """The enabled rules after a later word, which wins over what was enabled before.

    Within it the more exact selector wins (`select = ["TA600"]` over `ignore = ["TA6"]`), and of two alike `ignore`.
    TA000 and TA001 report on the check itself and leave only when ignored by name.

    Raises:
        UsageError: a selector names nothing; `where` says whose it is.
    """
    for selector in [*extend, *ignore]:
        check_selector(selector, where)
    chosen = set(rules)
    for rule in catalogue().values():
        on = max((specificity(selector, rule) for selector in extend), default=0)
        off = max((specificity(selector, rule) for selector in ignore), default=0)
        if on > off:
            chosen.add(rule.id)
        elif off > (2 if rule.id in _ALWAYS else 0):
            chosen.discard(rule.id)
    return frozenset(chosen)


def chosen(on: list[str], off: list[str], *, ties: bool = False) -> frozenset[str]:
    """The rules that a list names more exactly than its opposite does; with `ties`, also those it names as exactly."""
    return frozenset(
        rule.id
        for rule in catalogue().values()
        if (named := max((specificity(selector, rule) for selector in on), default=0))
        and named >= max((specificity(selector, rule) for selector in off), default=0) + (not ties)
    )


def check_selector(selector: str, where: str) -> None:
    """Raise UsageError, with the nearest names, if a selector names no rule."""
    if any(specificity(selector, rule) for rule in catalogue().values()):
        return
    near = difflib.get_close_matches(selector, sorted(set(selectors())), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `ta-lint rules` lists them all"
    raise UsageError(f"{where}: no rule, prefix, tag or alias is called {selector!r}{hint}")


def selectors() -> Iterator[str]:
    """Everything that may stand where a rule is named."""
    yield "ALL"
    for rule in catalogue().values():
        yield from (rule.id, rule.name, *rule.tags, *rule.also)


def find(selector: str) -> list[Rule]:
    """The rule with this id or name, or those with this alias: another tool's rule may be several here.

    Raises:
        UsageError: there is none.
    """
    found = [rule for rule in catalogue().values() if specificity(selector, rule) == 3]
    if found:
        return found
    check_selector(selector, "rule")
    raise UsageError(f"rule: {selector!r} names several rules; give one id or name, such as TA600")
