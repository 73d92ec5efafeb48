"""Facts about scripts, and about code for several releases, that no rule shows by itself."""

import libcst as cst
import pytest
from modules import call_in, module_of

TRAINS = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(batches):
    for batch in batches:
        model(batch).sum().backward()
        optimizer.step()
"""


def entries(text: str) -> tuple[str | None, str | None]:
    """What the entry of a script goes over, and that of one which does all by itself."""
    module = module_of(text)
    loops = (module.scripts.entry, module.scripts.own_entry)
    over = [module.code(loop.iter) if isinstance(loop, cst.For) else None for loop in loops]
    return over[0], over[1]


class TestScripts:
    @pytest.mark.parametrize(
        ("run", "entry"),
        [
            ("train(data)\n", "batches"),
            ("for epoch in range(3):\n    train(data)\n", "range(3)"),
            ("def main():\n    train(data)\nif __name__ == '__main__':\n    main()\n", "batches"),
            ("torch.multiprocessing.spawn(train)\n", "batches"),
            ("TRAINERS = {'plain': train}\n", None),
            ("def main():\n    train(data)\n", None),
            ("", None),
        ],
    )
    def test_the_outermost_loop_of_what_runs(self, run: str, entry: str | None) -> None:
        assert entries(TRAINS + run) == (entry, entry)

    def test_a_framework_may_do_some_of_it_unseen(self) -> None:
        assert entries(f"import fastai\n{TRAINS}train(data)\n") == ("batches", None)

    def test_a_table_runs_nothing_and_a_definition_is_not_run(self) -> None:
        module = module_of(f"{TRAINS}TRAINERS = [train]\n")
        assert not any(isinstance(node, cst.FunctionDef) for node in module.scripts.run)


def falls_back(text: str) -> bool:
    module = module_of(f"import torch, torchvision\n{text}")
    return module.fallbacks.around(call_in(module, "here()"))


class TestFallbacks:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("if torch.__version__ >= '2':\n    here()\n", True),
            ("if hasattr(torch, 'amp'):\n    pass\nelse:\n    here()\n", True),
            ("modern = hasattr(torch, 'amp')\nif modern:\n    here()\n", True),
            ("if TORCH_2_4:\n    here()\n", True),
            ("if is_torchvision_available():\n    here()\n", True),
            ("assert hasattr(torch, 'amp')\nhere()\n", True),
            ("def f():\n    if torch_version < 2:\n        return\n    here()\n", True),
            ("try:\n    here()\nexcept TypeError:\n    pass\n", True),
            ("try:\n    other()\nexcept Exception:\n    here()\n", True),
            ("if torch.cuda.is_available():\n    here()\n", False),
            ("try:\n    here()\nexcept OSError:\n    pass\n", False),
            ("try:\n    here()\nfinally:\n    pass\n", False),
            ("if getattr(torch, 'amp', None):\n    here()\n", True),
            ("if getattr(self.config, 'checkpointing', False):\n    here()\n", False),
            ("if verbose:\n    here()\n", False),
        ],
    )
    def test_whether_code_knows_of_several_releases(self, text: str, expected: bool) -> None:
        assert falls_back(text) is expected
