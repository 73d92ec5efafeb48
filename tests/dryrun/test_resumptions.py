"""What a dry run says of the files that a program saves and loads, and of what a training goes on without."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.files import may_be_one
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.sources import pieces_of
from ta_lint.dryrun.values import Value

NAMES = {
    "one constant": ("'a.pt'", "'a.pt'", True),
    "two constants": ("'a.pt'", "'b.pt'", False),
    "one option": ("args.file", "args.file", True),
    "two options": ("args.file", "args.other", False),
    "an extension in common": ("args.file + '.pt'", "args.other + '.pt'", False),
    "a folder in common": ("os.path.join(args.out, 'net.pt')", "f'{args.out}/net.pt'", True),
    "two files in a folder": ("os.path.join(args.out, 'a.pt')", "os.path.join(args.out, 'b.pt')", False),
    "two numbers": ("'%s/net_%d.pt' % (args.out, args.first)", "'{}/net_{}.pt'.format(args.out, n)", True),
    "a pattern": (
        "glob.glob(args.out + '/net_*.pt')[-1]",
        "pathlib.Path(args.out) / f'net_{n:03d}.pt'",
        True,
    ),
    "another pattern": ("glob.glob(args.out + '/net_*.pt')[-1]", "args.out + '/head.pt'", False),
    "a word where the other has a number": ("'out/resnet.pt'", "f'out/{n}.pt'", False),
    "a number where the other has one": ("'out/net7.pt'", "f'out/net{n}.pt'", True),
    "a folder in common that is written down": ("'models/' + args.first", "'models/' + args.other", False),
    "a word in common": ("'epoch_' + args.first", "'epoch_' + args.other", True),
}


def names(text: str, folder: Path) -> list[Value]:
    """The names of the files that a program loads and saves."""
    script = folder / "script.py"
    script.write_text(text, "utf-8")
    return [event.detail["file"] for event in dry_run(str(script)).events if "file" in event.detail]


@pytest.mark.parametrize("case", NAMES)
def test_two_names_may_be_those_of_one_file(case: str, tmp_path: Path) -> None:
    one, other, expected = NAMES[case]
    text = f"import argparse, glob, os, pathlib, torch\nargs = argparse.ArgumentParser().parse_args()\nfor n in range(99):\n    torch.load({one})\n    torch.save(1, {other})\n"
    loaded, *_, saved = names(text, tmp_path)
    assert may_be_one(loaded, saved) is expected


def test_a_name_that_a_function_gives_again_is_made_of_what_it_gets(tmp_path: Path) -> None:
    text = """\
import argparse
import os
import torch


def place(folder, name):
    return os.path.join(folder, name)


args = argparse.ArgumentParser().parse_args()
torch.load(place(args.a, "net.pt"))
torch.save(1, place(args.b, "head.pt"))
torch.save(1, place(args.b, "net.pt"))
torch.save(1, place(args.a, "net.pt"))
"""
    loaded, head, elsewhere, same = names(text, tmp_path)
    assert may_be_one(loaded, same)
    assert not may_be_one(loaded, head)
    assert next(pieces_of(elsewhere)) is not next(pieces_of(loaded))


def test_a_training_goes_on_without_what_no_file_has(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""\
import torch

net = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(net.parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
state = torch.load("last.pt")
net.load_state_dict(state["net"])
optimizer.load_state_dict(state["adam"])
for epoch in range(state["epoch"], 10):
    optimizer.zero_grad()
    net(torch.ones(1)).backward()
    optimizer.step()
    schedule.step()
    torch.save({"net": net.state_dict(), "adam": optimizer.state_dict(), "epoch": epoch}, "last.pt")
""")
    (resumption,) = run_of(dry_run(str(script)).events).resumptions
    (lost,) = resumption.lost
    assert (resumption.loaded.line, resumption.saved.line) == (6, 14)
    assert (lost.role, lost.kind, lost.place.line, lost.key) == ("scheduler", "StepLR", 5, None)


def test_a_state_under_another_key_is_misread(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""\
import torch

net = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(net.parameters())
state = torch.load("last.pt")
net.load_state_dict(state["net"])
optimizer.load_state_dict(state["optimizer"])
torch.save({"net": net.state_dict(), "adam": optimizer.state_dict()}, "last.pt")
""")
    (misread,) = run_of(dry_run(str(script)).events).misread
    assert (misread.place.line, misread.key, misread.own) == (7, "optimizer", None)
