"""What makes a file ours: the list of libraries, and the look at a file's bytes that goes by it."""

import json
import re
from pathlib import Path

import pytest

from ta_lint.core import libraries
from ta_lint.core.config import Configs, Options
from ta_lint.core.libraries import is_ours, may_be_ours
from ta_lint.engine import lint_file
from ta_lint.facts.torch import hub
from ta_lint.file import File, may_hold_findings

NAMES = [name for name, enough in libraries.libraries().items() if enough == "imported"]

REMOTE_CODE = """\
from datasets import load_dataset
from transformers import AutoModel, pipeline

model = AutoModel.from_pretrained("org/model", trust_remote_code=True)
generate = pipeline("text-generation", model="org/other", trust_remote_code=True)
data = load_dataset("org/data", trust_remote_code=True)
"""

# Shapes of a download as other linters report them: by position, by keyword, over several lines, from a branch, from a tag.
DOWNLOADS = """\
from datasets import load_dataset
from huggingface_hub import hf_hub_download, snapshot_download
from transformers import AutoModel, AutoTokenizer

model = AutoModel.from_pretrained("org/model")  # found
model = AutoModel.from_pretrained(  # found
    "org/model",
    revision="main",
)
model = AutoModel.from_pretrained("org/model", revision="v2.1.0")  # found
tokenizer = AutoTokenizer.from_pretrained("org/model")  # found
tokenizer = AutoTokenizer.from_pretrained("org/model", revision="main")  # found
data = load_dataset("org-data")  # found
data = load_dataset("org-data", revision="v1.0")  # found
file = hf_hub_download(repo_id="org/model", filename="config.json")  # found
file = hf_hub_download(repo_id="org/model", filename="config.json", revision="main")  # found
folder = snapshot_download(repo_id="org/model")  # found
folder = snapshot_download(repo_id="org/model", revision="refs/pr/1")  # found

COMMIT = "4c1d2e3f5a6b7c8d"
settings = {"revision": COMMIT}
model = AutoModel.from_pretrained("org/model", revision="4c1d2e3f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d")
model = AutoModel.from_pretrained("org/model", revision=COMMIT)
model = AutoModel.from_pretrained("org/model", revision=settings["revision"])
model = AutoModel.from_pretrained("./model")
tokenizer = AutoTokenizer.from_pretrained("/models/own")
data = load_dataset("org-data", revision="4c1d2e3f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d")
file = hf_hub_download(repo_id="org/model", filename="config.json", revision="4c1d2e3f5a6b7c8d")
folder = snapshot_download(repo_id="org/model", revision="4c1d2e3f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d")
"""


def found(tmp_path: Path, text: str, *rules: str, name: str = "run.py") -> list[tuple[str, int]]:
    path = tmp_path / name
    path.write_text(text)
    config = Configs(Options(select=list(rules)), tmp_path).of_directory(tmp_path)
    file = File(path, name, config)
    findings = lint_file(file)
    assert may_hold_findings([file]) or not findings
    return [(finding.rule, finding.site.line) for finding in findings]


def test_a_file_that_imports_no_torch_is_linted_if_it_imports_a_library_of_the_list(tmp_path: Path) -> None:
    """D3: remote code and downloads are found in files that never say torch."""
    assert found(tmp_path, REMOTE_CODE, "TA702") == [("TA702", 4), ("TA702", 5), ("TA702", 6)]


def test_every_unpinned_download_is_found_in_a_file_without_torch_and_no_pinned_one(tmp_path: Path) -> None:
    """D3: the shapes that Bandit's B615 reports, and those that it does not."""
    marked = [number for number, line in enumerate(DOWNLOADS.splitlines(), 1) if line.endswith("# found")]
    assert found(tmp_path, DOWNLOADS, "TA711") == [("TA711", line) for line in marked]


def test_a_notebook_is_ours_as_a_file_is(tmp_path: Path) -> None:
    """D3: in a notebook, imports stand in JSON."""
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": REMOTE_CODE,
    }
    notebook = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    assert len(found(tmp_path, notebook, "TA702", name="run.ipynb")) == 3


@pytest.mark.parametrize("name", NAMES)
def test_an_import_of_each_library_makes_a_file_ours(name: str) -> None:
    for statement in (
        f"import {name}",
        f"import os, {name} as library",
        f"from {name}.utils import x",
        f"def f():\n\tfrom  {name} import x",
        f"try: import {name}\nexcept ImportError: pass",
        f"x = 1; import {name}.utils",
        f"x = 1\r\nimport {name}\r\n",
    ):
        assert is_ours(statement.encode()), statement
        assert may_be_ours(statement.encode()), statement


@pytest.mark.parametrize("name", NAMES)
def test_the_word_alone_makes_no_file_ours(name: str) -> None:
    for text in (
        f"# as {name} does",
        f"{name} = 1",
        f"from .{name} import x",
        f"from . import {name}",
        f"import {name}_tools, my.{name}, my_{name}",
        f"from x import {name}",
        f'"""Values from {name} that we import {name} for."""',
    ):
        assert not is_ours(text.encode()), text


def test_torch_makes_a_file_ours_wherever_it_stands() -> None:
    assert is_ours(b"# see pytorch")
    assert is_ours(b"import torchvision")
    assert not is_ours(b"import json")


def test_the_hub_takes_from_libraries_of_the_list_alone() -> None:
    """Whatever library a rule about the hub names, its import is enough for the file to be looked at."""
    patterns = [taker.pattern for taker, _ in hub._TAKERS]
    named = {
        name for pattern in patterns for name in re.findall(r"[a-z_0-9]{4,}", pattern.partition(r"(\.")[0])
    }
    assert {"transformers", "datasets", "vllm"} <= named
    assert named <= {*NAMES}
