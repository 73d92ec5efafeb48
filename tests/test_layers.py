"""The arrows of docs/architecture.md, held over the imports in the source and over what a process really loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "ta_lint").rglob("*.py"))
RUNTIME_FILES = sorted((ROOT / "ta_runtime").rglob("*.py"))

# What each part of ta_lint may import of ta_lint, besides itself and ta_lint.core.
ALLOWED = {
    "core": set(),
    "facts": set(),
    "checks": {"facts"},
    "engine": {"checks", "facts", "file"},
    "file": set(),
    "discovery": {"file"},
    "fixing": {"engine", "file"},
    "cache": {"engine", "file"},
    "profiling": {"checks", "engine", "facts", "file"},
    "workers": set(),
    "runner": {"cache", "engine", "file", "fixing", "workers"},
    "merging": set(),
    "server": {"discovery", "engine", "file", "fixing", "runner", "texts"},
    "commands": {
        "cache",
        "profiling",
        "discovery",
        "engine",
        "file",
        "fixing",
        "merging",
        "runner",
        "server",
    },
    "cli": {"commands"},
    "texts": {"discovery", "runner"},
    "flake8": {"lint_text"},
    "__main__": {"cli"},
    "__init__": {"texts"},
}

# The same for ta_runtime, from the bottom up.
RUNTIME_ALLOWED = {
    "places": set(),
    "registers": {"places"},
    "sources": {"places"},
    "readings": set(),
    "loops": {"places", "sources"},
    "tree": set(),
    "settings": {"storage"},
    "digests": set(),
    "extras": set(),
    "masking": set(),
    "trackers": {"masking"},
    "storage": {"extras"},
    "program": set(),
    "facts": {"digests", "history", "names", "registers", "places", "sources"},
    "history": {"facts", "registers", "places"},
    "names": {"facts", "registers", "places", "sources"},
    "window": {"facts", "places", "readings"},
    "incidents": {"facts", "places"},
    "observers": {"facts", "loops", "places", "readings", "registers", "sources", "tree", "window", "session"}
    | {"digests", "ranks"},
    "checks": {"facts", "history", "loops", "places", "registers", "sources"},
    "session": {
        "checks",
        "facts",
        "history",
        "incidents",
        "names",
        "observers",
        "places",
        "registers",
        "settings",
        "sources",
        "window",
    },
    "finding": {"incidents", "places", "settings"},
    "ranks": {"facts", "incidents", "places"},
    "reports": {"ranks", "storage"},
    "linting": {"places"},
    "runs": {"extras", "masking", "ranks", "reports", "storage", "trackers"},
    "guarding": {"observers", "reports"},
    "steps": {"guarding", "observers"},
    "trace": {
        "digests",
        "extras",
        "guarding",
        "masking",
        "names",
        "observers",
        "places",
        "registers",
        "reports",
        "runs",
        "steps",
        "storage",
        "tree",
    },
    "invariants": {"extras", "facts", "places", "ranks", "runs", "session", "storage", "trace"},
    "monitor": {"extras", "observers", "ranks", "readings", "runs", "tree"},
    "snapshot": {
        "digests",
        "extras",
        "guarding",
        "masking",
        "names",
        "observers",
        "ranks",
        "registers",
        "reports",
        "runs",
    }
    | {"steps", "storage"},
    "recorder": {"facts", "names", "registers", "reports", "runs", "storage", "window"},
    "diff": {"runs", "storage"},
    "report": {"runs", "storage", "trackers"},
    "audit": {
        "linting",
        "checks",
        "finding",
        "incidents",
        "invariants",
        "observers",
        "ranks",
        "recorder",
        "reports",
        "session",
        "settings",
        "snapshot",
        "window",
    },
    "api": {"audit", "reports", "settings"},
    "reporters": {"audit", "reports"},
    "trial": {"facts", "history", "observers", "places", "session", "settings", "tree"},
    "auditor": {"audit", "places", "reporters", "settings", "trial"},
    "integrations": {"api", "audit", "extras", "monitor", "observers", "reports", "settings", "snapshot"}
    | {"steps"},
    "commands": {
        "api",
        "audit",
        "diff",
        "extras",
        "invariants",
        "places",
        "program",
        "ranks",
        "report",
        "reports",
        "runs",
        "session",
        "settings",
        "storage",
        "trace",
    },
    "cli": {"commands", "extras"},
    "__main__": {"cli"},
    "__init__": {"api", "auditor", "reporters", "session"},
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute, so that the arrows can be read"
            names = [alias.name for alias in node.names]
            module = node.module or ""
            found.update(f"{module}.{name}" for name in names) if module in (
                "ta_lint",
                "ta_runtime",
            ) else found.add(module)
    return found


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    own = path.relative_to(ROOT / "ta_lint").parts[0].removesuffix(".py")
    allowed = ALLOWED[own] | {own, "core", "__version__"}
    outside = {part(name) for name in imports(path) if name.split(".")[0] == "ta_lint"} - allowed
    assert not outside
    assert not {name for name in imports(path) if name.split(".")[0] in ("torch", "ta_runtime")}
    if own == "core":
        assert "libcst" not in {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", RUNTIME_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_of_the_run_imports_only_what_its_layer_may(path: Path) -> None:
    own = path.relative_to(ROOT / "ta_runtime").parts[0].removesuffix(".py")
    found = imports(path)
    outside = (
        {part(name) for name in found if name.split(".")[0] == "ta_runtime"} - RUNTIME_ALLOWED[own] - {own}
    )
    assert not outside
    linter = {name for name in found if name.split(".")[0] == "ta_lint"}
    linter -= {"ta_lint"} if own == "linting" else set()  # its public functions
    assert all(name == "ta_lint.__version__" or name.startswith("ta_lint.core") for name in linter), linter
    assert not {name for name in found if name.split(".")[0] in ("libcst", "pyflakes")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nobody_imports_the_slow_parts_of_libcst(path: Path) -> None:
    slow = ("libcst.matchers", "libcst.codemod")
    assert not {name for name in imports(path) if name.startswith(slow)}


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


def test_a_run_never_loads_the_linter_nor_libcst(tmp_path: Path) -> None:
    code = (
        "import sys, torch, ta_runtime\n"
        "ta_runtime.enable(output=None, live=False)\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"
        "model(torch.ones(4, 2)).mean().backward(); optimizer.step()\n"
        "assert ta_runtime.disable()\n"
        "print('loaded:', *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    modules = set(ran.stdout.rpartition("loaded:")[2].split())
    assert "ta_lint.core.catalogue" in modules
    assert not {name for name in modules if name.split(".")[0] in ("libcst", "pyflakes", "sarif_om", "rich")}
    assert not {
        name for name in modules if name.startswith("ta_lint.") and not name.startswith("ta_lint.core")
    }
