"""The mutation benchmark: what each mutation does to a small healthy script, and that what is written down is fresh."""

import difflib
import io
import json
import os
import tarfile
from pathlib import Path

import accuracy
import pytest
from corpus import FOLDER as CORPORA
from corpus import VERSIONS, Missing, unpack_sdist
from mutation import RESULTS, cause_of_miss, outcome_of, rules_to_test, summary
from mutations import MUTATIONS, Site, Text, mutants

from ta_lint.core.source import Source
from ta_lint.facts import FileFacts

HEALTHY = """
import copy

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = OneCycleLR(optimizer, max_lr=0.1, total_steps=100)
scaler = torch.amp.GradScaler()
best, best_loss = None, 1e9


def evaluate(model, batches):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            total += nn.functional.mse_loss(model(x), y).item()
    return total


for epoch in range(10):
    sampler.set_epoch(epoch)
    model.train()
    total = 0.0
    hidden = torch.zeros(4)
    for index, (x, y) in enumerate(batches):
        hidden = hidden.detach()
        output = model(x + hidden)  # the forward pass
        hidden = output
        loss = nn.functional.mse_loss(output, y)
        loss = loss / steps
        scaler.scale(loss).backward()
        total += loss.item()
        if (index + 1) % steps == 0 or index + 1 == len(batches):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    validation = evaluate(model, batches)
    if validation < best_loss:
        best = copy.deepcopy(model.state_dict())
"""

PLAIN = """
import torch

for x, y in batches:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

AVERAGE = """
import torch


@torch.no_grad()
def update_ema(ema, model):
    for mean, value in zip(ema.parameters(), model.parameters()):
        mean.mul_(0.9).add_(0.1 * value)


for x, y in batches:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    update_ema(ema, model)
"""

# By rule: the script, and the lines that each of its mutants has lost and got.
EXPECTED: dict[str, tuple[str, list[tuple[list[str], list[str]]]]] = {
    "TA206": (HEALTHY, [(["total += loss.item()"], ["total += loss"])]),
    "TA211": (PLAIN, [(["loss.backward()"], ["loss.backward(retain_graph=True)"])]),
    "TA310": (HEALTHY, [(["sampler.set_epoch(epoch)"], ["pass"])]),
    "TA502": (HEALTHY, [(["loss = loss / steps"], ["loss = (loss / steps).detach()"])]),
    "TA503": (PLAIN, [([], ["loss.requires_grad_()"]), ([], ["loss.requires_grad = True"])]),
    "TA505": (
        HEALTHY,
        [
            (
                ["output = model(x + hidden)  # the forward pass"],
                ["with torch.no_grad(): output = model(x + hidden)  # the forward pass"],
            )
        ],
    ),
    "TA507": (HEALTHY, [(["hidden = hidden.detach()"], ["pass"])]),
    "TA508": (AVERAGE, [(["@torch.no_grad()"], [])]),
    "TA600": (PLAIN, [(["optimizer.zero_grad()"], ["pass"])]),
    "TA601": (PLAIN, [(["optimizer.zero_grad()"], ["pass", "optimizer.zero_grad()"])]),
    "TA602": (PLAIN, [(["optimizer.zero_grad()"], ["optimizer.zero_grad()", "pass"])]),
    "TA603": (
        PLAIN,
        [
            (["optimizer.step()"], ["optimizer.step"]),
            (["loss.backward()"], ["loss.backward"]),
            (["optimizer.zero_grad()"], ["optimizer.zero_grad"]),
        ],
    ),
    "TA604": (
        HEALTHY,
        [
            (
                ["scaler.step(optimizer)"],
                ["pass", "scaler.step(optimizer)"],
            )
        ],
    ),
    "TA605": (HEALTHY, [(["scaler.unscale_(optimizer)"], ["pass"])]),
    "TA606": (
        HEALTHY,
        [(["scaler.step(optimizer)"], ["optimizer.step()"]), (["scaler.update()"], ["pass"])],
    ),
    "TA607": (HEALTHY, [(["scheduler.step()"], ["scheduler.step()", "pass"])]),
    "TA608": (HEALTHY, [(["scheduler.step()"], ["pass", "scheduler.step()"])]),
    "TA609": (HEALTHY, [(["loss = loss / steps"], ["pass"])]),
    "TA610": (
        HEALTHY,
        [
            (
                ["if (index + 1) % steps == 0 or index + 1 == len(batches):"],
                ["if (index + 1) % steps == 0:"],
            )
        ],
    ),
    "TA611": (HEALTHY, [(["model.train()"], ["pass"])]),
    "TA612": (HEALTHY, [(["model.eval()", "model.eval()"], ["pass", "pass"])]),
    "TA614": (PLAIN, [([], ["torch.manual_seed(0)"])]),
    "TA616": (
        HEALTHY,
        [(["best = copy.deepcopy(model.state_dict())"], ["best = model.state_dict()"])],
    ),
}


def site_of(code: str) -> Site:
    source = Source("train.py", code)
    module = FileFacts.of(source)
    [loop] = module.training_loops
    return Site(Text(module), loop)


def changes(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines lost and got, without their indentation."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    lost = [line[2:].strip() for line in lines if line.startswith("- ")]
    return lost, [line[2:].strip() for line in lines if line.startswith("+ ")]


@pytest.mark.parametrize("rule", EXPECTED)
def test_a_mutation_breaks_a_loop_in_its_own_way_alone(rule: str) -> None:
    code, expected = EXPECTED[rule]
    found = [changes(code, text) for text in mutants(site_of(code), rule)]
    assert [(sorted(lost), sorted(got)) for lost, got in found] == [
        (sorted(lost), sorted(got)) for lost, got in expected
    ]


def test_clipping_is_moved_behind_the_step() -> None:
    [text] = mutants(site_of(HEALTHY), "TA604")
    assert "scaler.step(optimizer)\n            nn.utils.clip_grad_norm_" in text


def test_an_evaluation_is_taken_out_of_no_grad_with_its_indentation() -> None:
    [text] = mutants(site_of(HEALTHY), "TA613")
    assert "with torch.no_grad()" not in text
    assert "    for x, y in batches:\n        total += nn.functional" in text


def test_each_mutation_is_tried() -> None:
    assert EXPECTED.keys() | {"TA613"} == MUTATIONS.keys()


@pytest.mark.parametrize("rule", MUTATIONS)
@pytest.mark.parametrize("code", [HEALTHY, PLAIN, AVERAGE], ids=["healthy", "plain", "average"])
def test_what_a_mutation_makes_compiles_and_differs(rule: str, code: str) -> None:
    for text in mutants(site_of(code), rule):
        compile(text, "mutant", "exec")
        assert text != code


def test_one_of_several_training_loops_is_broken_alone() -> None:
    source = Source("train.py", PLAIN + PLAIN.replace("import torch\n", ""))
    module = FileFacts.of(source)
    for loop in module.training_loops:
        [text] = mutants(Site(Text(module), loop), "TA600")
        assert text.count("optimizer.zero_grad()") == 1


def test_a_mutant_is_found_and_a_loop_with_a_finding_is_not_broken() -> None:
    outcome = outcome_of(PLAIN.encode(), "train.py", ["TA600", "TA601"])
    assert summary(outcome) == {"loops": 1, "healthy": 1, "mutants": 2, "found": 2}
    broken = PLAIN.replace("    optimizer.zero_grad()\n", "")
    outcome = outcome_of(broken.encode(), "train.py", ["TA600", "TA601"])
    assert summary(outcome) == {"loops": 1, "healthy": 0, "mutants": 0, "found": 0}
    assert outcome.tallies["TA600"].alarms == {"not judged": ["train.py:7"]}


IN_FUNCTIONS = """
import torch


def clear(optimizer):
    optimizer.zero_grad()


def train(model, batches, optimizer):
    for x, y in batches:
        clear(optimizer)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


net = Net()
train(net, batches, torch.optim.SGD(net.parameters(), lr=0.1))
"""


def test_a_mutant_is_looked_for_in_several_files_as_well() -> None:
    [rule] = outcome_of(IN_FUNCTIONS.encode(), "train.py", ["TA503"]).tallies.values()
    assert (rule.mutants, rule.found) == (2, 2)
    assert (rule.several.mutants, rule.several.found) == (2, 2)
    assert rule.several.misses == rule.several.alarms == []


def test_a_program_in_one_piece_is_not_split() -> None:
    [rule] = outcome_of(PLAIN.encode(), "train.py", ["TA600"]).tallies.values()
    assert (rule.mutants, rule.several.mutants) == (1, 0)


def test_a_miss_has_a_cause() -> None:
    code = PLAIN.replace("import torch\n", "import torch\nimport deepspeed\n")
    assert cause_of_miss("TA603", code.encode(), "train.py", 0) == "a framework may do it"


# -- what is written down -------------------------------------------------------------------------------------


def test_the_document_is_what_the_figures_say() -> None:
    assert accuracy.DOCUMENT.read_text(encoding="utf-8") == accuracy.document()


def test_the_results_are_of_these_rules() -> None:
    assert list(json.loads(RESULTS.read_text(encoding="utf-8"))["rules"]) == rules_to_test()


@pytest.mark.parametrize("name", ["byol-pytorch", "ctgan", "detecto", "pytorchyolo"])
def test_the_results_of_a_small_corpus_are_those_written_down(name: str) -> None:
    folder = CORPORA / f"{name}-{VERSIONS[name]}"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("python benchmarks/corpus.py has not been run")
        pytest.skip("python benchmarks/corpus.py brings the corpora")
    found = dict.fromkeys(("loops", "healthy", "mutants", "found"), 0)
    for path in sorted(folder.rglob("*.py")):
        name_of_file = f"{folder.name}/{path.relative_to(folder).as_posix()}"
        for key, number in summary(outcome_of(path.read_bytes(), name_of_file, rules_to_test())).items():
            found[key] += number
    assert found == json.loads(RESULTS.read_text(encoding="utf-8"))["corpora"][folder.name]


# -- source distributions -------------------------------------------------------------------------------------


def archive(*members: tuple[str, bytes], link: str | None = None) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as made:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
        if link is not None:
            info = tarfile.TarInfo("pkg-1/link.py")
            info.type = tarfile.SYMTYPE
            info.linkname = link
            made.addfile(info)
    return data.getvalue()


def test_a_source_distribution_is_unpacked_without_its_folder_links_and_other_files(tmp_path: Path) -> None:
    data = archive(("pkg-1/a/train.py", b"x = 1\n"), ("pkg-1/setup.cfg", b""), link="/etc/passwd")
    unpack_sdist(data, "pkg 1", tmp_path / "out")
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if not path.is_dir()]
    assert files == ["out/a/train.py"]
    assert (tmp_path / "out/a/train.py").read_bytes() == b"x = 1\n"


@pytest.mark.parametrize("name", ["pkg-1/../../evil.py", "evil.py", "../../evil.py"])
def test_a_member_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Missing, match="refused"):
        unpack_sdist(archive((name, b"")), "pkg 1", tmp_path / "in" / "out")
    assert not list(tmp_path.rglob("*.py"))


def test_what_is_no_archive_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="pkg 1"):
        unpack_sdist(b"no archive", "pkg 1", tmp_path)
