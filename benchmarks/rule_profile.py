"""Where the time of the linter goes on a corpus: by stage, and by rule.

Everything is measured from outside, by putting stopwatches around parts of `ta_lint` for the time of the run.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from corpus import sources
from tables import aligned

from ta_lint import checks, engine, runner
from ta_lint.checks import Check
from ta_lint.checks.gate import Text
from ta_lint.core.config import Configs, Options
from ta_lint.core.source import Source
from ta_lint.engine import File
from ta_lint.facts import Module, positions

READ, GATE, SYMTABLE, PARSE, TREE, CHECKS, AST, POSITIONS, REST = (
    "read", "gate", "symtable", "parse", "tree", "facts and checks", "ast", "positions", "rest",
)  # fmt: skip


@dataclass
class Profile:
    """CPU seconds by stage, and by rule in its check and in the gate; files that the gate lets through; findings."""

    corpus: str
    files: int
    stages: dict[str, float] = field(default_factory=dict)
    checks: dict[str, float] = field(default_factory=dict)
    gates: dict[str, float] = field(default_factory=dict)
    wanted: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)


class Stopwatch:
    """Time by name; what runs inside another part is not counted there again."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._names = [REST]
        self._since = time.process_time()

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Count what happens now under a name."""
        self._switch()
        self._names.append(name)
        try:
            yield
        finally:
            self._switch()
            self._names.pop()

    def stop(self) -> None:
        """Count what has happened since the last part."""
        self._switch()

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose time counts under a name."""

        def timed(*arguments: Any, **keywords: Any) -> Any:
            with self.timing(name):
                return function(*arguments, **keywords)

        return timed

    def _switch(self) -> None:
        now = time.process_time()
        name = self._names[-1]
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


def profile(folder: Path) -> Profile:
    """Lint a corpus in this process with the default rules, and measure it part by part."""
    config = Configs(Options(isolated=True), folder).root_config
    files = [File(path, path.relative_to(folder).as_posix(), config) for path in sources(folder)]
    measured = Profile(folder.name, len(files))
    loaded = checks.enabled(config.rules)  # before the clock starts: it imports libcst
    watch = Stopwatch()
    timed = [_timed(check, watch, measured) for check in loaded]
    with ExitStack() as patches:
        patches.enter_context(patch.object(checks, "enabled", lambda _: timed))
        for holder, name, stage in (
            (engine, "read", READ),
            (engine, "parse", PARSE),
            (positions, "positions", POSITIONS),
            (Module, "__init__", TREE),
            (Source.__dict__["symbols"], "func", SYMTABLE),
            (Source.__dict__["syntax"], "func", AST),
        ):
            patches.enter_context(patch.object(holder, name, watch.around(stage, getattr(holder, name))))
        for _, found in runner.lint_files(files, jobs=1):
            measured.findings.update(finding.rule for finding in found)
        watch.stop()
    measured.checks = {rule: watch.seconds.pop(rule, 0.0) for rule in measured.wanted}
    measured.gates = {rule: watch.seconds.pop(f"{GATE} {rule}", 0.0) for rule in measured.wanted}
    measured.stages = watch.seconds | {
        CHECKS: sum(measured.checks.values()),
        GATE: sum(measured.gates.values()),
    }
    return measured


def rendered(measured: Profile) -> Iterator[str]:
    """The profile as Markdown that reads as plain text, line by line."""
    whole = sum(measured.stages.values())
    yield f"{measured.corpus}, {measured.files} files, one process: {whole:.2f} s of CPU"
    yield ""
    stages = [READ, GATE, SYMTABLE, PARSE, TREE, CHECKS, AST, POSITIONS, REST]
    rows: list[tuple[str, ...]] = [("stage", "s", "share")]
    for stage in stages:
        seconds = measured.stages.get(stage, 0.0)
        rows.append((stage, f"{seconds:.2f}", f"{100 * seconds / whole:.1f} %"))
    yield from aligned(rows)
    yield ""
    rows = [("rule", "files wanted", "findings", "gate ms", "check ms", "check ms / file")]
    by_time = sorted(measured.wanted, key=lambda rule: (-measured.checks[rule] - measured.gates[rule], rule))
    rows += [_row(rule, measured) for rule in by_time]
    yield from aligned(rows)
    yield ""
    yield "The gate is NEEDS. A fact counts for the check that asks for it first, in order of id. ast serves positions and"
    yield "TA910."


def _row(rule: str, measured: Profile) -> tuple[str, ...]:
    check, wanted = 1000 * measured.checks[rule], measured.wanted[rule]
    per_file = f"{check / wanted:.2f}" if wanted else "-"
    findings = str(measured.findings[rule])
    return rule, str(wanted), findings, f"{1000 * measured.gates[rule]:.0f}", f"{check:.0f}", per_file


def _timed(check: Check, watch: Stopwatch, measured: Profile) -> Check:
    """A check that is timed: whether it wants a file counts for the gate, and what it does for its rule."""
    measured.wanted[check.rule] = 0

    def listed(function: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Any]:
        # a generator does its work when it is asked for more: in here, and not in the engine
        return watch.around(check.rule, lambda subject: list(function(subject)))

    class Timed(Check):
        def wants(self, text: Text) -> bool:
            with watch.timing(f"{GATE} {self.rule}"):
                wanted = super().wants(text)
            measured.wanted[self.rule] += wanted
            return wanted

    return Timed(
        check.rule,
        check.needs,
        listed(check.over_facts) if check.over_facts is not None else None,
        listed(check.over_source) if check.over_source is not None else None,
    )
