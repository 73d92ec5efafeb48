"""What an import runs: as much as tells what the names are, and no more."""

from pathlib import Path

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.program import AT_IMPORT

LONG = """\
def build(depth):
    return [build(depth - 1) for _ in unknown()] + [build(depth - 1)] if depth else []
tables = build(200)
RATE = 0.5
"""


def test_the_names_after_a_long_statement_of_an_imported_file_are_known(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nfrom settings import RATE\nassert RATE == 0.5\nmodel = torch.nn.Linear(2, 1)\n"
        "if RATE != 0.5:\n    raise SystemExit\ntorch.optim.SGD(model.parameters(), lr=RATE)\n"
    )
    (tmp_path / "settings.py").write_text(LONG)
    machine = dry_run(str(tmp_path / "train.py"))
    (built,) = (event for event in machine.events if event.action == "optimizer")
    assert built.doubt == 0
    assert machine.steps < 3 * AT_IMPORT


def test_a_package_need_not_run_for_a_file_of_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import torch\ntorch.manual_seed(0)\n")
    (package / "rates.py").write_text("RATE = 0.5\n")
    script = tmp_path / "train.py"
    script.write_text("from package import rates\nprint(rates.RATE)\n")
    assert "seed" not in [event.action for event in dry_run(str(script)).events]


def test_a_package_says_what_a_name_is_that_it_binds_beside_a_file_of_that_name(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .build import build\n")
    (package / "build.py").write_text("import torch\ndef build():\n    torch.manual_seed(0)\n")
    script = tmp_path / "train.py"
    script.write_text("from package import build\nbuild()\n")
    assert [event.action for event in dry_run(str(script)).events] == ["seed"]
