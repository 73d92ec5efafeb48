"""What the names of a program say is no proof: under other names, a dry run says the same."""

import ast
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from generating.programs import programs
from hypothesis import HealthCheck, given, settings
from renaming import STYLES, renamed, story

import ta_lint.dryrun
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.stubs.guess import _of_name, names
from ta_lint.dryrun.values import DATA

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    *sorted((ROOT / "tests" / "runs").glob("*.py")),
    *sorted((ROOT / "benchmarks/silent_bugs/scripts").glob("*/*.py"))[::20],
]


def differences(text: str, folder: Path, styles: list[str]) -> Iterator[str]:
    """The styles under which a dry run of a program says something else."""
    script = folder / "train.py"
    script.write_text(text, "utf-8")
    machine = dry_run(str(script))
    said = story(machine)
    for style in styles:
        script.write_text(renamed(text, STYLES[style], machine), "utf-8")
        if story(dry_run(str(script))) != said:
            yield style


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_other_names_change_nothing(program: Path, tmp_path: Path) -> None:
    style = list(STYLES)[len(program.read_bytes()) % len(STYLES)]
    assert list(differences(program.read_text("utf-8"), tmp_path, ["neutral", style])) == []


@settings(
    derandomize=True, database=None, deadline=None, max_examples=100, suppress_health_check=list(HealthCheck)
)
@given(text=programs())
def test_other_names_change_nothing_of_a_generated_program(text: str) -> None:
    style = list(STYLES)[len(text) % len(STYLES)]
    with tempfile.TemporaryDirectory() as folder:
        assert list(differences(text, Path(folder), ["neutral", style])) == []


def test_a_renamed_program_is_another_text(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef train(model, width=4):\n    x = torch.ones(width)\n    return model(x)\n\n\nclass A:\n    def __init__(self):\n        self.own = 1\n\n    def fetch_it(self):\n        return self.own\n\n\ntrain(A().fetch_it())\n"
    script = tmp_path / "train.py"
    script.write_text(text, "utf-8")
    new = renamed(text, STYLES["my_"], dry_run(str(script)))
    for line in (
        "def my_train(my_model, my_width=4):",
        "    my_x = torch.ones(my_width)",
        "class my_A:",
        "        my_self.my_own = 1",
        "my_train(my_A().my_fetch_it())",
    ):
        assert line in new


def test_a_hint_is_a_whole_word_of_a_name() -> None:
    for kind, words in names().items():
        for word in words:
            assert _of_name(word) == _of_name(f"my_{word}") == kind, word
            assert _of_name(f"x{word}x") is None, word


ASKED = """\
class Trainer:
    def __init__(self, refiner, mover):
        self.refiner, self.depth = refiner, 4
        self.kept = refiner
        self.mover = mover

    def fit(this, batches):
        for batch in batches:
            this.mover.zero_grad()
            this.kept(batch).mean().backward()
            this.mover.step()
        this.kept.eval()


def train(refiner, mover, batches):
    for batch in batches:
        mover.zero_grad()
        refiner(batch).mean().backward()
        mover.step()
    refiner.eval()
"""


def test_what_is_asked_of_an_argument_says_what_it_is(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(ASKED, "utf-8")
    for entry in ("train", "fit"):
        events = [event for event in dry_run(str(script)).events if event.entry.name == entry]
        actions = [event.action for event in events if event.action in ("clear", "backward", "step", "eval")]
        assert actions == ["clear", "backward", "step"] * 2 + ["eval"]


def test_no_word_of_people_is_in_the_code() -> None:
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for path in Path(ta_lint.dryrun.__file__).parent.rglob("*.py")
    }
    actions = {argument.value for tree in trees.values() for argument in emitted(tree)}
    words = {word for kind, known in names().items() if kind != DATA for word in known} - actions
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                said = {one.value for one in node.elts if isinstance(one, ast.Constant)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." not in node.value:
                said = {*node.value.split(), *node.value.split("|")}
            else:
                continue
            assert len(said & words) < 3, (
                f"{path.name}, line {node.lineno}: {said & words} belongs into ta_lint/data"
            )


def emitted(tree: ast.Module) -> Iterator[ast.Constant]:
    """The actions that a file emits."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit":
            yield from (
                part for one in node.args[:1] for part in ast.walk(one) if isinstance(part, ast.Constant)
            )
