"""Reads the SARIF logs that ta-lint and ta-runtime wrote, to merge them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import Unreadable, UsageError, oneline
from ta_lint.core.finding import (
    Applicability,
    Finding,
    Fix,
    Related,
    Severity,
    Site,
    Suppression,
    TextEdit,
    Verdict,
)
from ta_lint.core.reading import read
from ta_lint.core.sarif import FINGERPRINT, LOOKS

T = TypeVar("T")


@dataclass(frozen=True)
class Log:
    """The content of one log.

    `findings` are its results in order, `inspected` the places where a run looked and found nothing, or could not
    look, `notes` the sentences on what could not be checked. `compared` means that its findings were compared with a baseline.
    """

    path: Path
    findings: list[Finding]
    inspected: list[Finding]
    notes: list[str]
    compared: bool

    @property
    def suspected(self) -> list[Finding]:
        """The linter's findings, with their verdicts so far."""
        return [finding for finding in self.findings if finding.observer != "runtime"]

    @property
    def measured(self) -> list[Finding]:
        """What only a run found."""
        return [finding for finding in self.findings if finding.observer == "runtime"]


def read_log(path: Path) -> Log:
    """Read a log.

    Raises:
        UsageError: the file cannot be read, is not SARIF 2.1.0 of ours, or names an unknown rule; the message names
            the key.
    """
    name = str(path)
    try:
        log = json.loads(read(path))
    except Unreadable as error:
        raise UsageError(f"{name}: {error.reason}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not JSON: {oneline(error)}") from error
    version = log.get("version") if isinstance(log, dict) else None
    if version != "2.1.0":
        raise UsageError(f"{name}: not SARIF 2.1.0: its `version` is {json.dumps(version)}")
    entry = _LogEntry(log, (name, ""))
    runs = entry.entries("runs")
    for run in runs:
        tool = run.entry("tool").entry("driver").text("name")
        if tool != "ta-lint":
            raise UsageError(f"{name}: written by {tool}; give files from ta-lint and ta-runtime")
    found: list[Finding] = []
    for run in runs:
        found += [_finding(result) for result in run.entries("results")]
    properties = [run.entry("properties") for run in runs if "properties" in run]
    inspected = [
        _look(entry, verdict) for bag in properties for verdict in LOOKS for entry in bag.entries(verdict, ())
    ]
    invocations = [invocation for run in runs for invocation in run.entries("invocations", ())]
    notifications = [note for one in invocations for note in one.entries("toolExecutionNotifications", ())]
    notes = [note.entry("message").text("text") for note in notifications]
    compared = any("baselineState" in result for run in runs for result in run.entries("results"))
    return Log(path, found, inspected, notes, compared)


class _LogEntry:
    """An object of the log; `where` is the file and the path of keys, for error messages."""

    def __init__(self, value: object, where: tuple[str, str]) -> None:
        self._where = where
        if not isinstance(value, dict):
            raise _wrong(where, f"is no object but {json.dumps(value)[:40]}")
        self._value: dict[str, Any] = value

    def __contains__(self, key: str) -> bool:
        return key in self._value

    def wrong(self, why: str) -> UsageError:
        return _wrong(self._where, why)

    def _at(self, key: str) -> tuple[str, str]:
        file, inner = self._where
        return file, f"{inner}.{key}" if inner else key

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        value = self._value.get(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            what = "is missing" if key not in self._value else f"is no {kind.__name__}"
            raise _wrong(self._at(key), what)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return self.get(key, str, default)

    def texts(self, key: str) -> list[str]:
        found = self.get(key, list, [])
        if not all(isinstance(each, str) for each in found):
            raise _wrong(self._at(key), "is no list of texts")
        return found

    def number(self, key: str, default: int | None = None) -> int:
        return self.get(key, int, default)

    def entry(self, key: str) -> "_LogEntry":
        return _LogEntry(self.get(key, dict), self._at(key))

    def entries(self, key: str, default: tuple[()] | None = None) -> list["_LogEntry"]:
        values = self.get(key, list, None if default is None else [])
        file, inner = self._at(key)
        return [_LogEntry(value, (file, f"{inner}[{index}]")) for index, value in enumerate(values)]

    def first(self, key: str) -> "_LogEntry":
        found = self.entries(key)
        if not found:
            raise _wrong(self._at(key), "is empty")
        return found[0]

    def choice(self, key: str, kinds: Callable[[str], T]) -> T:
        word = self.text(key)
        try:
            return kinds(word)
        except ValueError as error:
            raise _wrong(self._at(key), f"is {word!r}") from error

    def values(self) -> Mapping[str, Any]:
        return self._value


def _wrong(where: tuple[str, str], why: str) -> UsageError:
    file, key = where
    return UsageError(f"{file}: `{key}` {why}" if key else f"{file}: the log {why}")


def _finding(result: _LogEntry) -> Finding:
    rule = _rule(result)
    properties = result.entry("properties")
    site = _site(result.first("locations"))
    fingerprint = ""
    if "partialFingerprints" in result:
        fingerprint = result.entry("partialFingerprints").text(FINGERPRINT, "")
    return Finding(
        rule=rule,
        message=_message(result),
        severity=result.choice("level", Severity),
        site=site,
        observer=properties.text("observer"),
        related=_related(result),
        evidence=_evidence(properties),
        fingerprint=fingerprint,
        fix=next((_fix(fix) for fix in result.entries("fixes", ())), None),
        suppression=next((_suppression(mark) for mark in result.entries("suppressions", ())), None),
        baselined=result.text("baselineState", "new") == "unchanged",
        verdict=properties.choice("verdict", Verdict) if "verdict" in properties else None,
        because=properties.text("because", ""),
        scopes=tuple(_scopes(properties)),
    )


def _look(entry: _LogEntry, verdict: Verdict) -> Finding:
    rule = _rule(entry)
    return Finding(
        rule=rule,
        message="",
        severity=catalogue()[rule].severity,
        site=_site(entry.first("locations")),
        observer="runtime",
        related=_related(entry),
        evidence=_evidence(entry),
        fingerprint=entry.text("fingerprint"),
        verdict=verdict,
        because=entry.text("because", ""),
    )


def _scopes(properties: _LogEntry) -> Iterator[tuple[str, str]]:
    for scope in properties.texts("scopes"):
        path, _, name = scope.rpartition("::")
        yield path, name


def _rule(entry: _LogEntry) -> str:
    rule = entry.text("ruleId")
    if rule not in catalogue():
        raise entry.wrong(f"has the rule {rule}, which this version does not know; update ta-lint")
    return rule


def _message(entry: _LogEntry, key: str = "message") -> str:
    """The message as findings have it: without the capital, full stop and escapes that the log added."""
    text = entry.entry(key).text("text").removesuffix(".")
    text = re.sub(r"\\\[([^\[\]]*)\\\]\(", r"[\1](", text)
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _related(entry: _LogEntry) -> tuple[Related, ...]:
    found = []
    for location in entry.entries("relatedLocations", ()):
        bag = location.entry("properties").text("fingerprint", "") if "properties" in location else ""
        message = _message(location) if "message" in location else ""
        found.append(Related(_site(location), message, bag))
    return tuple(found)


def _site(location: _LogEntry) -> Site:
    physical = location.entry("physicalLocation")
    region = physical.entry("region")
    line = region.number("startLine")
    column = region.number("startColumn", 1)
    names = location.entries("logicalLocations", ())
    return Site(
        path=_path(physical.entry("artifactLocation").text("uri")),
        line=line,
        column=column,
        end_line=region.number("endLine", line),
        end_column=region.number("endColumn", column + 1),
        name=names[0].text("fullyQualifiedName", "") if names else "",
    )


def _path(uri: str) -> str:
    return url2pathname(urlsplit(uri).path) if uri.startswith("file:") else unquote(uri)


def _evidence(bag: _LogEntry) -> Mapping[str, float | int | str]:
    if "evidence" not in bag:
        return {}
    return dict(bag.entry("evidence").values())


def _suppression(mark: _LogEntry) -> Suppression:
    return Suppression(mark.text("kind") == "inSource", mark.text("justification", ""))


def _fix(fix: _LogEntry) -> Fix:
    change = fix.first("artifactChanges")
    edits = []
    for replacement in change.entries("replacements"):
        region = replacement.entry("deletedRegion")
        line, column = region.number("startLine"), region.number("startColumn", 1)
        end = region.number("endLine", line), region.number("endColumn", column)
        edits.append(TextEdit(line, column, *end, replacement.entry("insertedContent").text("text")))
    applicability = fix.entry("properties").choice("applicability", Applicability)
    return Fix(_message(fix, "description"), tuple(edits), applicability)
