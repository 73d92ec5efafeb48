"""Test files: which rules look at them, by the setting `tests`, and what a test expects to fail."""

import ast
from pathlib import Path

import pytest
from test_cli import Command, project, ta_lint

from ta_lint import checks
from ta_lint.core.catalogue import catalogue, outside_tests
from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File, is_test

__all__ = ["project", "ta_lint"]  # fixtures

ADAM = "import torch\n\noptimizer = torch.optim.Adam(groups, weight_decay=0.1)\n"
LOOP = """\
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
"""
INTEGERS = "import torch\n\nlabels = torch.Tensor([0, 1])\n"
LIBRARY = 'import torch\n\nlibrary = torch.library.Library("ours", "DEF")\n'


def found(folder: Path, code: str, tests: str = "skip", name: str = "tests/test_it.py") -> list[str]:
    """What `ta-lint` finds in a file of these rules, as `TA401 note`."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    (folder / "ta-lint.toml").write_text(
        f"tests = '{tests}'\nselect = ['ALL']\nignore = ['TA910', 'TA911']\n"
    )
    file = File(path, name, Configs(Options(), folder).root_config)
    findings = lint_file(file)
    assert findings == lint_file(file._replace(gated=False))
    return [f"{finding.rule} {finding.severity}" for finding in findings if finding.counts]


@pytest.mark.parametrize(
    ("code", "rule", "severity"),
    [(ADAM, "TA401", "warning"), (LOOP, "TA600", "error"), (INTEGERS, "TA907", "note")],
    ids=["over the source", "over a run", "some findings of a rule"],
)
def test_what_does_not_matter_in_tests_is_found_there_as_the_setting_says(
    tmp_path: Path, code: str, rule: str, severity: str
) -> None:
    def of_rule(tests: str, name: str = "tests/test_it.py") -> list[str]:
        return [one for one in found(tmp_path, code, tests, name) if one.startswith(rule)]

    assert of_rule("skip") == []
    assert of_rule("note") == [f"{rule} note"]
    assert of_rule("lint") == [f"{rule} {severity}"]
    assert of_rule("skip", "train.py") == of_rule("note", "train.py") == [f"{rule} {severity}"]


@pytest.mark.parametrize("tests", ["skip", "note", "lint"])
def test_rules_about_all_code_and_about_tests_look_at_tests_whatever_the_setting(
    tmp_path: Path, tests: str
) -> None:
    removed = "import torch\n\nvalues = torch.symeig(matrix)\n"
    assert found(tmp_path, removed, tests) == ["TA900 error"]
    assert found(tmp_path, LIBRARY, tests) == ["TA908 note"]
    assert found(tmp_path, LIBRARY, tests, "train.py") == []


def test_a_rule_that_skips_a_file_costs_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.Check, "wants", lambda check, *_: pytest.fail(check.rule))
    (tmp_path / "ta-lint.toml").write_text("select = ['TA401', 'TA600']\n")
    path = tmp_path / "test_it.py"
    path.write_text(LOOP)
    assert lint_file(File(path, "test_it.py", Configs(Options(), tmp_path).root_config)) == []


def test_the_summary_counts_the_tests_that_rules_skip(project: Path, ta_lint: Command) -> None:
    for name in ("test_it.py", "conftest.py", "train.py"):
        (project / name).write_text("import torch\n")
    ta_lint("check", "--select=TA401,TA600,TA900")
    assert ta_lint.out == "All checks passed (2 rules skipped in 2 test files).\n"
    ta_lint("check", "--select=TA900")
    assert ta_lint.out == "All checks passed.\n"
    ta_lint("check", "--select=TA401", "train.py")
    assert ta_lint.out == "All checks passed.\n"
    (project / "test_it.py").write_text(f"{ADAM}torch.symeig(matrix)\n{LIBRARY.rstrip()}  # noqa: TA908\n")
    ta_lint("check", "--select=TA401,TA900,TA908", "test_it.py", "--format=concise")
    assert (
        ta_lint.out.splitlines()[-1]
        == "Found 1 error in 1 file (1 suppressed, 1 rule skipped in 1 test file)."
    )


def test_the_setting_ends_what_the_summary_says_and_what_the_cache_keeps(
    project: Path, ta_lint: Command
) -> None:
    (project / "test_it.py").write_text(ADAM)
    for tests, expected in (("skip", []), ("lint", ["test_it.py:3 TA401"]), ("skip", [])):
        (project / "ta-lint.toml").write_text(f"tests = '{tests}'\nselect = ['TA401']\n")
        assert ta_lint.check() == expected
    (project / "ta-lint.toml").write_text("tests = 'note'\nselect = ['TA401']\n")
    assert ta_lint("check") == 0
    assert ta_lint.out.startswith("Found 1 note in 1 file.\n")


def test_the_setting_is_shown_and_a_wrong_word_is_told(project: Path, ta_lint: Command) -> None:
    ta_lint("check", "--show-settings")
    assert 'tests = "skip"\n' in ta_lint.out
    (project / "ta-lint.toml").write_text("tests = 'off'\n")
    assert ta_lint("check") == 2
    assert "tests: invalid enum value 'off', it is one of skip, note, lint" in ta_lint.err


# -- what a test expects to fail ----------------------------------------------------------------------------------

EXPECTED = """\
import unittest

import numpy
import pytest
import torch
from pytest import raises


def test_it(matrix, case, sampler):
    with pytest.raises(RuntimeError), torch.no_grad():
        torch.symeig(matrix)
    with raises(RuntimeError, match="removed"):
        if matrix is not None:
            torch.symeig(matrix)
    pytest.raises(RuntimeError, lambda: torch.symeig(matrix))
    numpy.testing.assert_raises(RuntimeError, torch.symeig, matrix)


class TestIt(unittest.TestCase):
    def test_it(self, matrix):
        with self.assertRaisesRegex(RuntimeError, "removed"):
            torch.symeig(matrix)
        self.assertRaises(
            RuntimeError,
            torch.symeig,
            matrix,
        )
"""


@pytest.mark.parametrize("name", ["test_it.py", "helpers.py"])
def test_what_a_test_expects_to_fail_is_not_reported(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, EXPECTED, "lint", name) == []
    told = found(tmp_path, EXPECTED.replace("aises", "aised").replace("assert_raises", "call"), "lint", name)
    assert told == ["TA900 error"] * 6


def test_what_stands_beside_an_expectation_is_reported(tmp_path: Path) -> None:
    code = """\
import pytest
import torch

torch.symeig(matrix)
with pytest.raises(RuntimeError):
    pass
with torch.no_grad():
    torch.symeig(matrix)
parser.raises(torch.symeig(matrix))
"""
    assert found(tmp_path, code) == ["TA900 error"] * 3


def test_a_secret_in_what_is_expected_to_fail_is_one_even_so(tmp_path: Path) -> None:
    token = "ghp_" + "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX"
    code = (
        f"import pytest\nimport torch\n\nwith pytest.raises(OSError):\n    torch.hub.load(token='{token}')\n"
    )
    assert "TA708" in {one[:5] for one in found(tmp_path, code)}


# -- the rules ----------------------------------------------------------------------------------------------------


def test_only_rules_that_the_linter_looks_for_say_that_they_skip_tests() -> None:
    assert outside_tests() == {rule.id for rule in catalogue().values() if not rule.tests}
    assert outside_tests() <= checks.stems().keys()


def test_rules_over_runs_skip_tests_which_are_never_run_dry_unless_asked() -> None:
    assert checks.shared().keys() <= outside_tests()


def test_no_check_asks_whether_its_file_is_a_test_but_the_one_about_tests() -> None:
    asking = {
        path.name[:5]
        for path in Path(checks.__path__[0]).rglob("ta*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "is_test"
    }
    assert asking == {"ta908"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("test_it.py", True),
        ("src/it_test.py", True),
        ("conftest.py", True),
        ("tests/data/it.py", True),
        ("tests.py", False),
        ("attest.py", False),
        ("latest/it.py", False),
        ("contest.py", False),
    ],
)
def test_a_test_file_has_its_name_or_its_folder(path: str, expected: bool) -> None:
    assert is_test(path) is expected
