"""The blocks of pages and cases with `ranks=2`: two processes with gloo run them, and rank 0 says what both saw.

One pair of processes runs them all. What makes a rank die has a pair of its own, below.
"""

import json
from pathlib import Path

import pytest
import torch.distributed as dist
from commands import Ran, warm
from marked import Block, blocks
from two_ranks import Job, Told, run_all

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Verdict

ROOT = Path(__file__).parents[1]
PAGE_BLOCKS, CASE_BLOCKS = (
    [block for page in sorted((ROOT / folder).glob("TA*.md")) for block in blocks(page) if not block.alone]
    for folder in ("rules", "tests/cases")
)
VERDICTS = [block for block in CASE_BLOCKS if "verdict" in block.words]
CASES = [block for block in CASE_BLOCKS if "runtime" in block.words]

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")


def job(block: Block, folder: Path) -> Job:
    rules = {block.page[:5], *(rule for _, rule in block.expected("runtime"))}
    if block in PAGE_BLOCKS:
        rules |= {rule.id for rule in catalogue().values() if rule.default}
    every = int(block.settings.get("every", 1))
    return Job(block.code, folder, sorted(rules), every_n_steps=every, invariants=block.invariants)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    folder = tmp_path_factory.mktemp("pair")
    every = {str(block): block for block in [*PAGE_BLOCKS, *CASE_BLOCKS]}
    jobs = []
    for number, block in enumerate(every.values()):
        (own := folder / str(number)).mkdir()
        jobs.append(job(block, own))
    return dict(zip(every, run_all(jobs, folder), strict=True))


@pytest.mark.parametrize("block", [*PAGE_BLOCKS, *CASES], ids=str)
def test_two_ranks_find_exactly_what_is_marked(block: Block, told: dict[str, Told]) -> None:
    assert told[str(block)].raised == []
    assert told[str(block)].found == block.expected("runtime"), told[str(block)].evidence


@pytest.mark.parametrize("block", VERDICTS, ids=str)
def test_two_ranks_give_each_suspicion_its_verdict(block: Block, told: dict[str, Told]) -> None:
    assert told[str(block)].raised == []
    for verdict in Verdict:
        assert told[str(block)].verdicts[verdict.value] == block.expected(verdict), verdict


@pytest.mark.parametrize("block", [block for block in PAGE_BLOCKS if "bad" in block.words], ids=str)
def test_the_evidence_names_the_ranks(block: Block, told: dict[str, Told]) -> None:
    assert {evidence["ranks"] for evidence in told[str(block)].evidence} <= {"0,1", "0", "1"}
    assert all("ranks" in evidence for evidence in told[str(block)].evidence)


# -- what ends the process ------------------------------------------------------------------------------------

CAPACITY = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
capacity = 4 if dist.get_rank() == 0 else 6  # each rank's own
received = torch.empty(2 * capacity)
dist.all_to_all_single(received, torch.ones(2 * capacity))
"""


def launched(folder: Path, script: str) -> Ran:
    (folder / ".git").mkdir()
    (folder / "train.py").write_text(script)
    command = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "-m", "ta_runtime", "run"]
    return warm(folder, *command, "--output=ta.json", "train.py", timeout=180)


def test_a_collective_that_aborts_is_reported_before_it_does(tmp_path: Path) -> None:
    ran = launched(tmp_path, CAPACITY)
    assert ran.returncode != 0
    found = [finding for path in tmp_path.glob("ta*.json") for finding in json.loads(path.read_text())]
    mismatches = [finding for finding in found if finding["rule"] == "TA810"]
    assert mismatches, ran.stderr
    for finding in mismatches:
        assert finding["line"] == 7
        sizes = {finding["evidence"][f"elements between the two on rank {rank}"] for rank in range(2)}
        assert sizes == {4, 6}
        assert finding["evidence"]["ranks"] == "0,1"
