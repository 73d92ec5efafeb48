"""What a dry run says of seeds and of loops that are cut short is what a real run of the same program finds."""

from pathlib import Path

import pytest
from observed import both

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.run import Run

START = """\
import random
import torch
from itertools import islice
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(70, 4)), batch_size=8)


def step(x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def reproducible(seed):
    random.seed(seed)
    torch.manual_seed(seed)


"""
X = "torch.randn(8, 4)"
SEEDS = {
    "in each pass": (f"for epoch in range(6):\n    torch.manual_seed(0)\n    step({X})", {23}),
    "once": (f"torch.manual_seed(0)\nfor epoch in range(6):\n    step({X})", set()),
    "another one each time": (f"for epoch in range(6):\n    torch.manual_seed(epoch)\n    step({X})", set()),
    "put back": (
        f"for epoch in range(6):\n    state = torch.get_rng_state()\n    torch.manual_seed(0)\n    torch.set_rng_state(state)\n    step({X})",
        set(),
    ),
    "in a fork": (
        f"for epoch in range(6):\n    with torch.random.fork_rng(devices=[]):\n        torch.manual_seed(0)\n    step({X})",
        set(),
    ),
}
CUTS = {
    "by a limit": (
        "for i, (x,) in enumerate(loader):\n        if i > 2:\n            break\n        step(x)",
        {24},
    ),
    "by a slice": ("for (x,) in islice(loader, 4):\n        step(x)", {23}),
    "one too few": (
        "batches = iter(loader)\n    for _ in range(len(loader) - 1):\n        step(next(batches)[0])",
        {24},
    ),
    "not at all": ("for (x,) in loader:\n        step(x)", set()),
    "beyond the end": (
        "for i, (x,) in enumerate(loader):\n        if i > 20:\n            break\n        step(x)",
        set(),
    ),
}


def lines(run: Run, *, of_seeds: bool) -> set[int]:
    if not of_seeds:
        return {cut.place.line for cut in run.cuts if cut.recurs}
    return {
        one.place.line
        for one in run.seedings
        if len(one.values) == 1 and len(one.starts) >= 3 and len({found for *_, found in one.starts}) == 1
    }


@pytest.mark.parametrize("what", SEEDS)
def test_a_seed_repeats_in_a_dry_run_where_it_does_in_a_real_one(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, wanted = SEEDS[what]
    seen, said = both(START + code, tmp_path, monkeypatch)
    assert lines(said, of_seeds=True) == lines(seen, of_seeds=True) == wanted


@pytest.mark.parametrize("what", CUTS)
def test_a_loop_is_cut_short_in_a_dry_run_where_it_is_in_a_real_one(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, wanted = CUTS[what]
    seen, said = both(f"{START}for epoch in range(3):\n    {code}", tmp_path, monkeypatch)
    assert lines(said, of_seeds=False) == lines(seen, of_seeds=False) == wanted


def dry(folder: Path, code: str) -> Run:
    script = folder / "train.py"
    script.write_text(START + code)
    return run_of(dry_run(str(script)).events)


def test_a_seed_that_functions_pass_on_is_given_where_the_loop_calls_them(tmp_path: Path) -> None:
    run = dry(tmp_path, f"reproducible(1)\nfor epoch in range(6):\n    reproducible(2)\n    step({X})")
    assert lines(run, of_seeds=True) == {24}


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ("x.sum().item()", False),
        ("model(x).mean().item()", True),
        ("bool(model(x).mean() > 0)", True),
        ("model(x).cpu()", True),
        ("model(x).mean()", False),
    ],
)
def test_a_step_waits_for_values_that_a_model_computes(read: str, found: bool, tmp_path: Path) -> None:
    run = dry(tmp_path, f"model.cuda()\nfor (x,) in loader:\n    step(x)\n    {read}")
    assert [sync.place.line for sync in run.syncs] == [25] * found


def test_nothing_waits_on_the_cpu(tmp_path: Path) -> None:
    assert not dry(
        tmp_path, "model.to('cpu')\nfor (x,) in loader:\n    step(x)\n    model(x).mean().item()"
    ).syncs


@pytest.mark.parametrize(
    ("copy", "found"),
    [
        ("x.to('cuda', non_blocking=True)", True),
        ("x.cuda(non_blocking=True)", True),
        ("x.to('cuda')", False),
        ("x.to('cpu', non_blocking=True)", False),
        ("(x + 1).to('cuda', non_blocking=True)", False),
    ],
)
def test_a_batch_is_copied_as_its_loader_gives_it(copy: str, found: bool, tmp_path: Path) -> None:
    run = dry(tmp_path, f"for (x,) in loader:\n    step({copy})")
    assert [(one.place.line, one.loader and one.loader.line) for one in run.copies] == [(23, 8)] * found
