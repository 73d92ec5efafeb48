"""The states of models that are kept while the models change, as the dry run sees them."""

from pathlib import Path
from textwrap import dedent

import pytest

from ta_lint.dryrun.collect.kept import kept_of
from ta_lint.dryrun.dryrun import dry_run

START = """
    import copy

    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def train():
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
"""


def kept_in(folder: Path, program: str) -> list[str]:
    """The lines that keep a state which changes before it is used."""
    path = folder / "example.py"
    text = dedent(START) + dedent(program)
    path.write_text(text, "utf-8")
    return [text.splitlines()[one.place.line - 1].strip() for one in kept_of(dry_run(str(path)).events)]


@pytest.mark.parametrize(
    "program",
    [
        "state = model.state_dict()\ntrain()\ntorch.save({'model': state}, 'a.pt')",
        "kept = [copy.copy(model.state_dict())]\ntrain()\nmodel.load_state_dict(kept[0])",
        "state = {k: v.data for k, v in model.state_dict().items()}\ntrain()\nmodel.load_state_dict(state)",
        "state = {**{'a': 1}, 'model': model.state_dict()}\nnn.init.zeros_(model.weight.data)\ntrain()\ntorch.save(state, 'a.pt')",
    ],
)
def test_a_state_has_the_tensors_of_its_model(program: str, tmp_path: Path) -> None:
    assert len(kept_in(tmp_path, program)) == 1


@pytest.mark.parametrize(
    "program",
    [
        "state = copy.deepcopy({'model': model.state_dict()})\ntrain()\ntorch.save(state, 'a.pt')",
        "state = model.state_dict()\nstate['weight'] = state['weight'].clone()\ntrain()\ntorch.save(state, 'a.pt')",
        "state = model.state_dict()\ntorch.save(state, 'a.pt')\ntrain()",
        "state = model.state_dict()\nmodel.half()\nmodel.cuda()\ntrain()\ntorch.save(state, 'a.pt')",
        "while True:\n    train()\n    if input():\n        state = model.state_dict()\n        break\ntorch.save(state, 'a.pt')",
        "def found():\n    while True:\n        train()\n        if input():\n            return model.state_dict()\ntorch.save(found(), 'a.pt')",
        "other = copy.deepcopy(model)\nstate = other.state_dict()\ntrain()\ntorch.save(state, 'a.pt')",
    ],
)
def test_a_state_of_its_own_stays(program: str, tmp_path: Path) -> None:
    assert kept_in(tmp_path, program) == []
