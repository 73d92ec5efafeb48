"""`ta-lint check --profile`: where the time of a run goes, by stage, by rule and by fact.

Everything is measured from outside: a profiled run patches timers around functions of ta-lint. A plain run has none.
"""

import builtins
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial, wraps
from types import GeneratorType
from typing import Any, NamedTuple

from ta_lint import checks

START, IMPORTS, REST = "start-up", "imports", "rest"
GATES, CHECKS, FACTS = "gates", "checks", "facts"

_STAGES = {
    "ta_lint.core.config": {"Configs.__init__": "settings"},
    "ta_lint.cache": dict.fromkeys(("Cache.__init__", "Cache.find", "Cache.keep", "Cache.close"), "cache"),
    "ta_lint.core.reading": {"read": "reading"},
    "ta_lint.core.source": {
        "source_of": "reading",
        "Source.symbols": "symbol table",
        "Source.syntax": "ast",
    },
    "ta_lint.engine": {
        "read": "reading",
        "source_of": "reading",
        "_looking": GATES,
        "_placed": "places, fixes",
        "_finished": "suppression",
    },
    "ta_lint.syntax.concrete": {"whole": "libcst parse", "Concrete._parsed": "libcst parse"},
    "ta_lint.syntax.parse": {"converted": "nodes"},
    "ta_lint.syntax.tree": {"Tree.__init__": "tree index"},
    "ta_lint.commands.check.files": {"discover": "discovery", "named": "discovery"},
    "ta_lint.commands.check.lint": {"may_hold_findings": "reading"},
    "ta_lint.commands.check.report": {"write": "report"},
}
"""The functions and properties of each stage, by module. A stage does not include time spent in another."""


class ProfiledPart(NamedTuple):
    """A stage, or its part for one rule or fact."""

    stage: str
    of: str = ""


class Stopwatch:
    """Seconds and entries of each part; time in a nested part does not count for the outer one."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds: defaultdict[ProfiledPart, float] = defaultdict(float)
        self.entries: Counter[ProfiledPart] = Counter()
        self._clock = clock
        self._parts = [ProfiledPart(REST)]
        self._since = clock()

    @contextmanager
    def timing(self, part: ProfiledPart) -> Iterator[None]:
        """Count the time in the block for a part."""
        self.entries[part] += 1
        self._switch()
        self._parts.append(part)
        try:
            yield
        finally:
            self._switch()
            self._parts.pop()

    def around(self, part: ProfiledPart, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a timer; for a generator, each step is timed too."""

        @wraps(function)
        def timed(*arguments: Any, **keywords: Any) -> Any:
            with self.timing(part):
                result = function(*arguments, **keywords)
            return self._asked(part, result) if isinstance(result, GeneratorType) else result

        return timed

    def stop(self) -> None:
        """Count the time since the last switch."""
        self._switch()

    def _asked(self, part: ProfiledPart, generator: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self.timing(part):
                self.entries[part] -= 1
                try:
                    item = next(generator)
                except StopIteration:
                    return
            yield item

    def _switch(self) -> None:
        now = self._clock()
        self.seconds[self._parts[-1]] += now - self._since
        self._since = now


class Profile:
    """The measurements of a stopwatch, and the number of findings of each rule, including suppressed ones."""

    def __init__(self) -> None:
        self.watch = Stopwatch()
        self.watch.seconds[ProfiledPart(START)] = time.process_time()  # of the process until now
        self.findings: Counter[str] = Counter()
        self.wanted: Counter[str] = Counter()

    def rendered(self) -> str:
        """Three tables: stages, rules and facts, each with the longest first.

        A rule that ran on no file and took less than a thousandth of the time is left out.
        """
        seconds, entries = self.watch.seconds, self.watch.entries
        whole = sum(seconds.values())
        stages, rules, facts = (defaultdict[str, float](float) for _ in range(3))
        times: Counter[str] = Counter()
        for part, spent in seconds.items():
            stages[part.stage] += spent
            if part.of:
                times[part.stage] += entries[part]
                (facts if part.stage == FACTS else rules)[part.of] += spent

        def of_stage(stage: str) -> tuple[str, ...]:
            return (
                stage,
                f"{stages[stage]:.3f}",
                f"{100 * stages[stage] / whole:.1f} %",
                str(entries[ProfiledPart(stage)] or times[stage] or ""),
            )

        def of_rule(rule: str) -> tuple[str, ...]:
            gate, check = (f"{1000 * seconds[ProfiledPart(stage, rule)]:.1f}" for stage in (GATES, CHECKS))
            return rule, gate, str(self.wanted[rule]), check, str(self.findings[rule])

        def of_fact(fact: str) -> tuple[str, ...]:
            part = ProfiledPart(FACTS, fact)
            return fact, f"{1000 * seconds[part]:.1f}", str(entries[part])

        shown = {rule: spent for rule, spent in rules.items() if self.wanted[rule] or spent >= whole / 1000}
        tables = [
            _table(("stage", "s", "share", "times"), map(of_stage, _longest_first(stages))),
            _table(
                ("rule", "gate ms", "files wanted", "check ms", "findings"),
                map(of_rule, _longest_first(shown)),
            ),
            _table(("fact", "ms", "times"), map(of_fact, _longest_first(facts))),
        ]
        return "\n".join([f"Profile of one process: {whole:.2f} s of CPU.\n", *filter(None, tables)])


@contextmanager
def profiling() -> Iterator[Profile]:
    """Measure the part of a lint that runs in this process, until the block ends."""
    profile = Profile()
    with ExitStack() as stack:
        _Patcher(profile, stack).patch()
        yield profile
        profile.watch.stop()


class _Patcher:
    """Patches timers into each module as soon as it is loaded, as a run loads only what it needs."""

    def __init__(self, profile: Profile, stack: ExitStack) -> None:
        self._profile = profile
        self._watch = profile.watch
        self._stack = stack
        self._done: set[str] = set()
        self._timed: set[Callable[..., Any]] = set()
        self._depth = 0

    def patch(self) -> None:
        """Patch timers into the loaded modules and into the functions that load more."""
        self._replace(builtins, "__import__", self._importing(builtins.__import__))
        self._replace(checks, "import_module", self._importing(vars(checks)["import_module"]))
        self._replace(checks, "load", partial(self._loaded, checks.load.__wrapped__))
        self._replace(checks.Check, "wants", self._wants(checks.Check.wants))
        checks.enabled.cache_clear()
        self._stack.callback(checks.enabled.cache_clear)
        self._patch_loaded()

    def _importing(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def loading(name: str, *arguments: Any, **keywords: Any) -> Any:
            if _is_loaded(name, *arguments, **keywords):
                return load(name, *arguments, **keywords)
            self._depth += 1
            try:
                with self._watch.timing(ProfiledPart(IMPORTS)):
                    module = load(name, *arguments, **keywords)
            finally:
                self._depth -= 1
            if not self._depth:  # all modules are fully loaded
                self._patch_loaded()
            return module

        return loading

    def _patch_loaded(self) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("ta_lint.") and name not in self._done and module is not None:
                self._done.add(name)
                for path, stage in _STAGES.get(name, {}).items():
                    self._time(module, path, ProfiledPart(stage))
                if name.startswith("ta_lint.facts."):
                    self._time_facts(module)
                if name == "ta_lint.engine":
                    self._replace(module, "_finished", self._counted(vars(module)["_finished"]))

    def _time(self, module: Any, path: str, part: ProfiledPart) -> None:
        *above, name = path.split(".")
        holder = getattr(module, above[0]) if above else module
        now = vars(holder)[name]
        if isinstance(now, cached_property):
            self._replace(now, "func", self._watch.around(part, now.func))
        elif now not in self._timed:  # a function imported from another module may be timed already
            timed = self._watch.around(part, now)
            self._timed.add(timed)
            self._replace(holder, name, timed)

    def _time_facts(self, module: Any) -> None:
        """Count what is computed once per file for the fact, and not for the rule that needs it first."""
        stem = module.__name__.rpartition(".")[2]
        for holder in [each for each in vars(module).values() if isinstance(each, type)]:
            for name, value in vars(holder).items():
                if holder.__module__ == module.__name__ and isinstance(value, cached_property):
                    fact = ProfiledPart(FACTS, name if stem == "module" else stem)
                    self._replace(value, "func", self._watch.around(fact, value.func))

    def _loaded(self, load: Callable[[str], checks.Check | None], rule: str) -> checks.Check | None:
        check = load(rule)
        if check is None:
            return None
        around = partial(self._watch.around, ProfiledPart(CHECKS, rule))
        return replace(
            check,
            over_facts=around(check.over_facts) if check.over_facts is not None else None,
            over_text=around(check.over_text) if check.over_text is not None else None,
        )

    def _wants(self, wants: Callable[..., bool]) -> Callable[..., bool]:
        def counted(check: checks.Check, *arguments: Any) -> bool:
            with self._watch.timing(ProfiledPart(GATES, check.rule)):
                wanted = wants(check, *arguments)
            self._profile.wanted[check.rule] += wanted
            return wanted

        return counted

    def _counted(self, finish: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            findings = finish(*arguments)
            self._profile.findings.update(finding.rule for finding in findings)
            return findings

        return counted

    def _replace(self, holder: Any, name: str, value: Any) -> None:
        before = vars(holder)[name]
        setattr(holder, name, value)
        self._stack.callback(setattr, holder, name, before)


def _is_loaded(
    name: str, _globals: object = None, _locals: object = None, fromlist: Any = (), level: int = 0
) -> bool:
    """Whether an import, given by the arguments of `__import__`, has nothing to load; there are thousands of those."""
    module = sys.modules.get(name) if not level else None
    return module is not None and all(hasattr(module, each) for each in fromlist or ())


def _longest_first(spent: Mapping[str, float]) -> list[str]:
    return sorted(spent, key=lambda name: (-spent[name], name))


def _table(header: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> str:
    """A table with two blanks between columns, all but the first right-aligned; empty without a body."""
    rows = [header, *body]
    if len(rows) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *figures in rows:
        cells = [cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines) + "\n"
