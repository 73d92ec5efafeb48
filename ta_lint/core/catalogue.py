"""The rule catalogue, read directly from the Markdown pages, one per rule."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ta_lint.core.errors import UsageError, hint
from ta_lint.core.terms import Severity
from ta_lint.core.toml import parsed

_ALWAYS = ("TA000", "TA001")

PAGES_URL = "https://github.com/ta-lint/ta-lint/blob/main/rules"

# A prefix of another tool's ids, such as `TOR1`. Two letters at least: many tools share a single one, so `W5` is ambiguous.
_FOREIGN_PREFIX = re.compile(r"[A-Z]{2,}\d*")

_TITLE = re.compile(r"# (?P<id>TA\d{3}): (?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)\n")
_DIGITS = str.maketrans("OIL", "011")
"""Letters that are taken for digits in an id."""

_SENTENCE = re.compile(r"((?:`[^`]*`|[^`])+?[.?!:]\)?|.+)\s(?=[A-Z`(\"]|$)")
_METADATA = re.compile(r"```toml\n(?P<toml>.*?)```\n", re.DOTALL)


# What each key of a page's metadata accepts: one of these words, or any value of this type; in a list, each item does.
_KEYS: dict[str, tuple[str, ...] | type] = {
    "severity": tuple(Severity),
    "observers": ("static", "runtime"),
    "default": bool,
    "precision": ("very-high", "high", "medium", "low"),
    "fix": ("safe", "unsafe", "none"),
    "tags": str,
    "since": str,
    "tests": bool,
    "also": str,
    "security-severity": float,
    "cwe": str,
}
_LISTS = ("observers", "tags", "also", "cwe")
_OPTIONAL = ("tests", "also", "security-severity", "cwe")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as its page describes it. `also` lists the ids of the same pitfall in other tools.

    `tests` says whether the linter looks for it in test files without being asked to (`terms.InTests`).
    """

    id: str
    name: str
    severity: Severity
    observers: tuple[str, ...]
    default: bool
    precision: str
    fix: str
    tags: tuple[str, ...]
    since: str
    tests: bool
    also: tuple[str, ...]
    security_severity: float | None
    cwe: tuple[str, ...]
    summary: str
    page: str

    @property
    def stem(self) -> str:
        return f"{self.id}-{self.name}"

    @property
    def finds(self) -> str:
        """The first sentence of its summary, or what stands before its colon."""
        finds = _SENTENCE.match(self.summary + " ")[1]  # type: ignore[index]  # a summary ends in a full stop
        return f"{finds[:-1]}." if finds.endswith(":") else finds

    @property
    def url(self) -> str:
        return f"{PAGES_URL}/{self.stem}.md"


def rules_dir() -> Path:
    """The folder of the pages: in the installed package, otherwise in the checkout that holds this file."""
    package = Path(__file__).parents[1]
    packaged = package / "_rules"
    if packaged.is_dir():
        return packaged
    checkout = package.resolve().parent
    if (checkout / "pyproject.toml").is_file():  # a `rules` folder beside an installed package is not ours
        return checkout / "rules"
    raise FileNotFoundError("ta-lint was installed without its rule pages; install it again")


@cache
def pages() -> dict[str, bytes]:
    """The content of each page by file name, ordered by id."""
    folder = str(rules_dir())
    found: dict[str, bytes] = {}
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - of some hundred, in every run
        if name.startswith("TA") and name.endswith(".md"):
            with open(f"{folder}/{name}", "rb", buffering=0) as stream:  # noqa: PTH123
                found[name] = stream.read()
    return found


@cache
def catalogue() -> dict[str, Rule]:
    """Every rule by id, ordered by id."""
    return {rule.id: rule for rule in map(_rule, pages())}


@cache
def rule_of(id_: str) -> Rule:
    """One rule by id. A run that reports few rules need not parse every page."""
    return next(_rule(name) for name in pages() if name.startswith(f"{id_}-"))


def _rule(name: str) -> Rule:
    return parse_page(name, pages()[name].decode().replace("\r\n", "\n"))


@cache
def default_rules() -> frozenset[str]:
    """The ids of the rules that are enabled by default."""
    return _stating(b"default = true")


@cache
def outside_tests() -> frozenset[str]:
    """The ids of the rules that are about other code than tests."""
    return _stating(b"tests = false")


def _stating(line: bytes) -> frozenset[str]:
    """The ids of the rules whose metadata has a line, found without parsing the pages."""
    metadata = ((name, page.partition(b"```toml")[2].partition(b"```")[0]) for name, page in pages().items())
    return frozenset(name[:5] for name, toml in metadata if b"\n" + line in toml)


def parse_page(filename: str, page: str) -> Rule:
    """The rule that a page describes.

    Raises:
        ValueError: the title or the metadata is missing or wrong, or the name differs from the file name.
    """
    title = _TITLE.match(page)
    metadata = _METADATA.search(page)
    if title is None or metadata is None:
        raise ValueError(f"{filename}: a rule page starts with '# TAnnn: name' and a toml block")
    try:
        fields = _fields(metadata["toml"])
    except ValueError as error:
        raise ValueError(f"{filename}: {error}") from error
    rule = Rule(
        id=title["id"],
        name=title["name"],
        severity=Severity(fields["severity"]),
        observers=tuple(fields["observers"]),
        default=fields["default"],
        precision=fields["precision"],
        fix=fields["fix"],
        tags=tuple(fields["tags"]),
        since=fields["since"],
        tests=fields.get("tests", True),
        also=tuple(fields.get("also", ())),
        security_severity=fields.get("security-severity"),
        cwe=tuple(fields.get("cwe", ())),
        summary=page[metadata.end() :].strip().partition("\n\n")[0].replace("\n", " "),
        page=page,
    )
    if filename != f"{rule.stem}.md":
        raise ValueError(f"{filename}: the title says {rule.stem}")
    return rule


def _fields(toml: str) -> dict[str, Any]:
    fields = parsed(toml)
    _check(fields)
    return fields


def _check(fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        if key not in _KEYS:
            raise ValueError(f"there is no key {key!r}; the keys are {', '.join(_KEYS)}")
        may_be = _KEYS[key]
        listed = key in _LISTS
        items = value if listed and isinstance(value, list) else [value]
        fits = isinstance(value, list) == listed
        if not fits or not all(
            isinstance(item, may_be) if isinstance(may_be, type) else item in may_be for item in items
        ):
            words = may_be.__name__ if isinstance(may_be, type) else " or ".join(may_be)
            raise ValueError(f"{key}: {value!r} is not {'a list of ' * listed}{words}")
    missing = [key for key in _KEYS if key not in fields and key not in _OPTIONAL]
    if missing:
        raise ValueError(f"{', '.join(missing)}: missing")


def specificity(selector: str, rule: Rule) -> int:
    """How exactly a selector matches a rule: 3 for an id, name or alias, 2 for a prefix, 1 for a tag or ALL, otherwise 0."""
    upper = selector.upper()
    lower = selector.lower()
    if upper == rule.id or lower == rule.name or lower in map(str.lower, rule.also):
        return 3
    if re.fullmatch(r"TA\d{0,2}", upper) and rule.id.startswith(upper):
        return 2
    if _FOREIGN_PREFIX.fullmatch(upper) and any(name.startswith(upper) for name in rule.also):
        return 2
    return 1 if upper == "ALL" or lower in rule.tags else 0


@lru_cache(1024)
def named(selector: str, exactly: int) -> tuple[Rule, ...]:
    """The rules that a selector matches at least as exactly as this (`specificity`)."""
    return tuple(rule for rule in catalogue().values() if specificity(selector, rule) >= exactly)


def selected(
    select: Sequence[str] | None, extend: Sequence[str], ignore: Sequence[str], where: str
) -> frozenset[str]:
    """The ids of the enabled rules: those in `select`, or the default ones without it, then adjusted.

    Raises:
        UsageError: a selector matches nothing; `where` names the setting in the message.
    """
    base = frozenset(_ALWAYS) if select is not None else default_rules()
    return adjusted(base, [*(select or ()), *extend], ignore, where)


def adjusted(
    rules: frozenset[str], extend: Sequence[str], ignore: Sequence[str], where: str
) -> frozenset[str]:
    """The enabled rules after later settings, which override the rules enabled before.

    Among these the more exact selector wins (`select = ["TA600"]` over `ignore = ["TA6"]`), and `ignore` wins a tie.
    TA000 and TA001 report on the check itself, so only their exact names turn them off.

    Raises:
        UsageError: a selector matches nothing; `where` names the setting in the message.
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


def chosen(on: Sequence[str], off: Sequence[str], *, ties: bool = False) -> frozenset[str]:
    """The rules that `on` matches more exactly than `off` does; with `ties`, also those that both match equally."""
    return frozenset(
        rule.id
        for rule in catalogue().values()
        if (named := max((specificity(selector, rule) for selector in on), default=0))
        and named >= max((specificity(selector, rule) for selector in off), default=0) + (not ties)
    )


def check_selector(selector: str, where: str) -> None:
    """Raise UsageError, with the closest names, if a selector matches no rule."""
    if named(selector, 1):
        return
    near = _near(selector)
    raise UsageError(f"{where}: no rule, prefix, tag or alias is called {selector!r}{near}")


def _near(selector: str) -> str:
    """What may be meant by a selector that matches nothing: of an id, the rules whose ids begin like it."""
    like_id = selector.upper().translate(_DIGITS)
    if like_id.startswith("TA") and like_id[2:3].isdigit():
        starts = (like_id[:end] for end in range(min(len(like_id), 5), 2, -1))
        known = next((start for start in starts if any(rule.startswith(start) for rule in catalogue())), None)
        if known is not None and known != selector:
            return f"; did you mean {known}?" + (
                "" if known in catalogue() else f" `ta-lint rules {known}` lists its rules"
            )
    return hint(selector, set(selectors()), most=3) or "; `ta-lint rules` lists them all"


def selectors() -> Iterator[str]:
    """Every selector there is."""
    yield "ALL"
    for rule in catalogue().values():
        yield from (rule.id, rule.name, *rule.tags, *rule.also)


def find(selector: str) -> list[Rule]:
    """The rule with this id or name, or all rules with this alias: one rule of another tool may match several.

    Raises:
        UsageError: no rule matches.
    """
    found = [rule for rule in catalogue().values() if specificity(selector, rule) == 3]
    if found:
        return found
    check_selector(selector, "rule")
    raise UsageError(f"rule: {selector!r} names several rules; give one id or name, such as TA600")
