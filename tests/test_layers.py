"""The arrows of docs/architecture.md, held over the imports in the source and over what a process really loads.

Every import counts, wherever it stands: at the top, in a function, or under `TYPE_CHECKING`, as who reads a file needs to know
that other one as well. What does not count is `__version__`, and the `__init__` of a package that Python loads on the way.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = [
    "core",
    "events",
    "project",
    "dryrun",
    "file",
    "syntax",
    "facts/values",
    "facts/program",
    "facts/loops",
    "facts/torch",
    "facts",
    "checks",
    "scripts",
    "engine",
    "profiling",
    "fixing",
    "signed",
    "cache",
    "workers",
    "runner",
    "discovery",
    "merging",
    "texts",
    "__init__",
    "flake8",
    "server",
    "commands",
    "cli",
    "__main__",
]
"""The rooms of ta_lint from the bottom up: each imports of those before it, and none of those after it."""

RUNTIME_ROOMS = [
    "faults",
    "startup",
    "coverage",
    "cells",
    "extras",
    "measure",
    "probes",
    "naming",
    "facts",
    "incidents",
    "storage",
    "settings",
    "ranks",
    "reports",
    "runs",
    "observers",
    "checks",
    "trace",
    "invariants",
    "snapshot",
    "monitor",
    "html",
    "diff",
    "report",
    "audit",
    "preflight",
    "api",
    "integrations",
    "__init__",
    "commands",
    "cli",
    "__main__",
]
"""Those of ta_runtime: `probes` know none of the sessions, traces, snapshots and monitors that listen to them."""


class Import(NamedTuple):
    """A line of a file that imports, and what: a module, or a name in one."""

    path: Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}: {self.name}"

    @property
    def package(self) -> str:
        return self.name.split(".")[0]

    @property
    def file(self) -> Path | None:
        """The file of ours that holds it; None of a library, and of the version, which all may know."""
        if self.package not in ("ta_lint", "ta_runtime") or self.name == "ta_lint.__version__":
            return None
        parts = self.name.split(".")
        for known in range(len(parts), 0, -1):
            module = ROOT.joinpath(*parts[:known])
            for path in (module.with_suffix(".py"), module / "__init__.py"):
                if path in FILES:
                    return path
        return None


@cache
def imports(path: Path) -> list[Import]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [Import(path, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [Import(path, node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


FILES = {*files("ta_lint"), *files("ta_runtime")}


def imported(package: str) -> Iterator[Import]:
    """All that the files of a package import."""
    for path in files(package):
        yield from imports(path)


def shown(found: Iterable[Import]) -> list[str]:
    return [str(each) for each in found]


def part(path: Path) -> str:
    """The part of its package that a file belongs to."""
    return path.relative_to(ROOT).parts[1].removesuffix(".py")


def room(path: Path) -> str:
    """As a part, but that the rooms of the facts are several."""
    inside = path.relative_to(ROOT / "ta_lint").parts
    return "/".join(inside[:2]) if inside[0] == "facts" and len(inside) > 2 else part(path)


def test_imports_are_absolute_so_that_the_arrows_can_be_read() -> None:
    assert (
        shown(each for each in (*imported("ta_lint"), *imported("ta_runtime")) if each.name[0] == ".") == []
    )


FLOORS = {
    package: {name: number for number, name in enumerate(rooms)}
    for package, rooms in (("ta_lint", ROOMS), ("ta_runtime", RUNTIME_ROOMS))
}


def floor(path: Path) -> int:
    package = path.relative_to(ROOT).parts[0]
    return FLOORS[package][room(path) if package == "ta_lint" else part(path)]


@pytest.mark.parametrize("package", FLOORS)
def test_every_file_is_in_a_room(package: str) -> None:
    of = room if package == "ta_lint" else part
    assert sorted({of(path) for path in files(package)} - FLOORS[package].keys()) == []


@pytest.mark.parametrize("package", FLOORS)
def test_a_room_imports_only_of_the_rooms_below_it(package: str) -> None:
    assert (
        shown(
            each
            for each in imported(package)
            if each.file is not None and each.package == package and floor(each.file) > floor(each.path)
        )
        == []
    )


@pytest.mark.parametrize("package", FLOORS)
def test_no_imports_go_in_a_circle(package: str) -> None:
    arrows = {
        path: {each.file for each in imports(path) if each.file is not None} - {path}
        for path in files(package)
    }
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        circle = " <- ".join(path.relative_to(ROOT).as_posix() for path in error.args[1])
        pytest.fail(f"a circle: {circle}")


def test_probes_alone_wrap_and_hook_torch() -> None:
    """No hook is registered, no function wrapped and no attribute of torch set, but that a framework's object is followed."""
    inside, frameworks = (ROOT / "ta_runtime" / name for name in ("probes", "integrations"))
    found = []
    for path in files("ta_runtime"):
        for node in ast.walk(ast.parse(path.read_bytes())) if inside not in path.parents else ():
            if (
                registers_a_hook(node)
                or sets_an_attribute_of_torch(node, path)
                or (wraps(node) and frameworks not in path.parents)
            ):
                found.append(f"{path.relative_to(ROOT).as_posix()}: {ast.unparse(node)}")
    assert found == []


def test_one_module_alone_asks_where_tensors_lie() -> None:
    """D7: raw memory was read in several places, and one of them read that of a tensor which has none."""
    raw = {"data_ptr", "untyped_storage", "from_address", "_typed_storage"}
    found = [
        f"{path}:{node.lineno}"
        for path in files("ta_runtime")
        if path.name != "memory.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in raw
    ]
    assert found == []


def registers_a_hook(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and bool(
        re.fullmatch(r"register_\w*hook", getattr(node, "attr", "") or getattr(node, "id", ""))
    )


def wraps(node: ast.AST) -> bool:
    """Whether it wraps a function by `probes.patching`."""
    if isinstance(node, ast.ImportFrom):
        return not {"Patch", "Recoded", "attribute", "code"}.isdisjoint(each.name for each in node.names)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "patch"


def sets_an_attribute_of_torch(node: ast.AST, path: Path) -> bool:
    torchs = {each.name.partition(".")[0] for each in imports(path)} & {"torch"}
    names = {each.name.rpartition(".")[2] for each in imports(path) if each.package == "torch"} | torchs
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("setattr", "delattr")
    ):
        return root(node.args[0]) in names
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
    return any(isinstance(each, ast.Attribute) and root(each) in names for each in targets)


def root(node: ast.expr) -> str:
    """The name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


LIVE = {
    "LayerCall",
    "Model",
    "Optimizer",
    "Gradients",
    "Update",
    "State",
    "Filters",
    "Step",
    "Run",
    "Wrapper",
}
"""The facts that hold a module, a tensor, an optimizer, or what knows them; the others are plain values. It is to shrink."""


def test_facts_are_plain_values_but_for_those_that_are_listed() -> None:
    live = re.compile(r"\b(Module|Tensor|torch\.optim\.Optimizer|Names|Register|History)\b")
    holders = {
        kind.name
        for path in files("ta_runtime")
        if part(path) == "facts" and path.stem != "history"
        for kind in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(kind, ast.ClassDef)
        for field in kind.body
        if isinstance(field, ast.AnnAssign) and live.search(ast.unparse(field.annotation))
    }
    assert holders == LIVE


SHARED_NAMES = {
    "ta_lint": {
        "Call",
        "Cut",
        "Event",
        "Flow",
        "Frame",
        "Held",
        "Layer",
        "Place",
        "Program",
        "Sequence",
        "Shape",
        "State",
        "Stream",
        "Suspicion",
        "Value",
    },
    "ta_runtime": {"AuditCallback", "MonitorCallback", "SnapshotCallback", "Run", "Watcher"},
}
"""What the dry run and the engine that it will replace both name; what each framework and each template has its own of; and the run that
goes on, beside the public one that was recorded."""


@pytest.mark.parametrize("package", SHARED_NAMES)
def test_a_class_name_has_one_owner(package: str) -> None:
    owners: dict[str, list[str]] = {}
    for path in files(package):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {
        name: paths for name, paths in owners.items() if len(paths) > 1 and name not in SHARED_NAMES[package]
    } == {}


def test_the_linter_imports_neither_torch_nor_the_run() -> None:
    assert shown(each for each in imported("ta_lint") if each.package in ("torch", "ta_runtime")) == []


def test_the_core_imports_no_parser() -> None:
    inside = ROOT / "ta_lint" / "core"
    assert (
        shown(
            each for each in imported("ta_lint") if inside in each.path.parents and each.package == "libcst"
        )
        == []
    )


def test_nobody_imports_the_slow_parts_of_libcst() -> None:
    slow = ("libcst.matchers", "libcst.codemod")
    assert shown(each for each in imported("ta_lint") if each.name.startswith(slow)) == []


def test_the_run_imports_of_the_linter_what_both_observers_share() -> None:
    def is_allowed(each: Import) -> bool:
        if each.file is None:
            return each.package not in ("libcst", "pyflakes")
        shared = part(each.file) in ("core", "events") or each.name in (
            "ta_lint.checks.module_of",
            "ta_lint.checks.shared",
        )
        return shared or (each.path.stem == "linting" and part(each.file) == "__init__")

    assert (
        shown(
            each for each in imported("ta_runtime") if each.package != "ta_runtime" and not is_allowed(each)
        )
        == []
    )


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The top-level packages that a command has loaded when it ends."""
    code = (
        "import sys; from ta_lint.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('loaded:', *{name.split('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.rpartition("loaded:")[2].split())


HEAVY = {"attr", "libcst", "msgspec", "packaging", "pathspec", "pyflakes", "rich", "sarif_om"}


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_little_more_than_argparse(arguments: list[str], tmp_path: Path) -> None:
    assert not loaded(tmp_path, *arguments) & {*HEAVY, "dataclasses", "inspect", "pathlib", "typing"}


def test_rules_and_rule_load_no_parser(tmp_path: Path) -> None:
    assert not loaded(tmp_path, "rules") & {"libcst", "rich", "pyflakes", "sarif_om"}
    assert not loaded(tmp_path, "rule", "TA600") & {"libcst", "rich", "pyflakes", "sarif_om"}


def test_where_nothing_can_be_found_nothing_that_looks_for_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    for files in ({}, {"plain.py": "print('hello')\n", "other.py": "import os\n"}):
        for name, code in files.items():
            (tmp_path / name).write_text(code)
        assert not loaded(tmp_path, "check") & {
            *HEAVY,
            "dataclasses",
            "inspect",
            "ast",
            "tempfile",
            "hashlib",
        }
        assert not (tmp_path / ".ta_cache").exists()


def test_a_folder_with_settings_loads_no_parser(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nselect = ['TA6']\nexclude = ['a/**']\n")
    (tmp_path / "plain.py").write_text("print('hello')\n")
    assert not loaded(tmp_path, "check") & {"libcst", "rich", "pyflakes", "sarif_om"}


def test_the_linter_never_loads_torch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\ntorch.load('x', weights_only=False)\n")
    packages = loaded(tmp_path, "check", "--select=ALL", "--format=sarif", "train.py")
    assert {"libcst", "sarif_om"} <= packages
    assert not packages & {"torch", "ta_runtime", "rich"}


def loaded_by_an_audit(folder: Path) -> set[str]:
    """The modules that a process has loaded when a small training in it was audited."""
    code = (
        "import sys, torch, ta_runtime\n"
        "ta_runtime.enable(output=None, live=False)\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"
        "model(torch.ones(4, 2)).mean().backward(); optimizer.step()\n"
        "assert ta_runtime.disable()\n"
        "print('loaded:', *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.rpartition("loaded:")[2].split())


def test_an_audit_loads_the_thin_part_alone(tmp_path: Path) -> None:
    """Of which the architecture says how large it is."""
    ours = {name.split(".")[1] for name in loaded_by_an_audit(tmp_path) if name.startswith("ta_runtime.")}
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"The thin part, (.*), is all that an audit loads: ([\d,]+) lines", architecture)
    assert sorted(ours - {"api"}) == sorted(re.findall(r"`(\w+)`", said[0]))
    thin = [path for path in files("ta_runtime") if part(path) in ours]
    lines = sum(len(path.read_bytes().splitlines()) for path in thin)
    assert lines == pytest.approx(int(said[1].replace(",", "")), rel=0.05)


def test_a_run_never_loads_the_linter_nor_libcst(tmp_path: Path) -> None:
    modules = loaded_by_an_audit(tmp_path)
    assert "ta_lint.core.catalogue" in modules
    assert not {name for name in modules if name.split(".")[0] in ("libcst", "pyflakes", "sarif_om", "rich")}
    ours = {name for name in modules if name.startswith("ta_lint.")}
    assert {name.split(".")[1] for name in ours} == {"core", "events", "checks"}
    checks = {name for name in ours if name.startswith("ta_lint.checks.")} - {"ta_lint.checks.gate"}
    assert all(name.startswith("ta_lint.checks.runs") for name in checks)
