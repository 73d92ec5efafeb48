"""What the corpora call and no stub of the dry run describes, most frequent first: `python benchmarks/unknown_calls.py [RELEASE ...]`.

A call counts once for each place where it is written, however often it runs. Operators are left out.
"""

import argparse
import ast
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from ta_lint.dryrun.machine import calling

# isort: split

_call = calling.call
_seen: "Calls | None" = None


def _watched(
    machine: "Machine", function: "Value", args: "list[Value]", kwargs: "dict[str, Value]", node: ast.AST, *, loose: bool = False
) -> "Value":  # fmt: skip
    if _seen is not None:
        _seen.note(machine, function, node)
    return _call(machine, function, args, kwargs, node, loose=loose)


calling.call = _watched  # before the modules that import it

from ta_lint.dryrun import dryrun  # noqa: F401 - it fills the library
from ta_lint.dryrun.machine.entries import run_script
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.program import Program
from ta_lint.dryrun.values import Bound, Class, External, Native, Unknown, Value
from ta_lint.project.layout import Layout

CORPORA = Path(__file__).resolve().parent / "corpora"
METHOD = " is out of sight"
Site = tuple[str, int, int]


@dataclass
class Calls:
    """The places of calls by the full name of what is called."""

    known: dict[str, set[Site]] = field(default_factory=lambda: defaultdict(set))
    unknown: dict[str, set[Site]] = field(default_factory=lambda: defaultdict(set))
    nameless: set[Site] = field(default_factory=set)
    """Calls on values of which nobody knows where they are from."""
    misfits: dict[str, str] = field(default_factory=dict)
    """The stubs that did not find what they look for, which is perhaps a bug of theirs."""

    def note(self, machine: Machine, function: Value, node: ast.AST) -> None:
        """A call happens."""
        while isinstance(function, Bound):
            function = function.function
        place = machine.place(node)
        site = place.file, place.line, getattr(place.node, "col_offset", 0)
        if isinstance(function, Native) or (
            isinstance(function, Class) and function.node is None and not function.out_of_sight
        ):
            self._add(self.known, function.name, site)
        elif isinstance(function, External):
            self._add(self.unknown, function.name, site)
        elif isinstance(function, Class) and function.node is None:
            self._add(self.unknown, function.name.removeprefix("?"), site)
        elif isinstance(function, Unknown):
            if isinstance(node, ast.Call) and function.why.endswith(f".{_attribute(node)}{METHOD}"):
                self._add(self.unknown, function.why.removesuffix(METHOD), site)
            else:
                self.nameless.add(site)

    @staticmethod
    def _add(calls: dict[str, set[Site]], name: str, site: Site) -> None:
        if not name.rpartition(".")[2].startswith("__"):
            calls[name].add(site)


def _attribute(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def watch(release: Path) -> Calls:
    """Dry-run the files of a release that name torch."""
    global _seen
    _seen = calls = Calls()
    machine = Machine(Program(Layout(str(release))))
    for path in sorted(release.rglob("*.py")):
        if b"torch" in path.read_bytes():
            try:
                run_script(machine, str(path))
            except Exception as error:  # noqa: BLE001 - one file that ends so hides no other
                print(f"{path}: {error!r}", file=sys.stderr)
    calls.misfits = machine.misfits
    return calls


def main() -> int:
    """Dry-run and print."""
    parser = argparse.ArgumentParser(description="List what the corpora call and no stub describes.")
    parser.add_argument(
        "releases", nargs="*", metavar="RELEASE", help="folders of benchmarks/corpora (default: all)"
    )
    parser.add_argument("--most", type=int, default=100, help="so many names (default: 100)")
    parser.add_argument("--known", action="store_true", help="list what is known instead")
    options = parser.parse_args()
    releases = [CORPORA / name for name in options.releases] or sorted(CORPORA.iterdir())
    every = Calls()
    for release in releases:
        calls = watch(release)
        for name, sites in calls.known.items():
            every.known[name] |= sites
        for name, sites in calls.unknown.items():
            every.unknown[name] |= sites
        every.nameless |= calls.nameless
        every.misfits |= calls.misfits
        print(f"{release.name}: {_share(calls)}", file=sys.stderr, flush=True)
    print(f"{'calls':>6} {'files':>6}  name, and a place")
    chosen = every.known if options.known else every.unknown
    for name, sites in sorted(chosen.items(), key=lambda one: (-len(one[1]), one[0]))[: options.most]:
        file, line, _ = min(sites)
        print(
            f"{len(sites):6} {len({site[0] for site in sites}):6}  {name}  {Path(file).relative_to(CORPORA)}:{line}"
        )
    print(_share(every))
    print(
        f"{len(every.misfits)} stubs do not find what they look for{''.join(f'; {name}: {where}' for name, where in every.misfits.items())}"
    )
    return 0


def _share(calls: Calls) -> str:
    known, unknown = (sum(map(len, one.values())) for one in (calls.known, calls.unknown))
    return (
        f"{known} of {known + unknown} calls of libraries are known ({known / max(known + unknown, 1):.1%}), "
        f"{len(calls.known)} of {len(calls.known) + len(calls.unknown)} names; "
        f"{len(calls.nameless)} calls are on values that are not known"
    )


if __name__ == "__main__":
    raise SystemExit(main())
