"""Facts about where values come from, and what hubs are asked for, that no rule shows by itself."""

import libcst as cst
import pytest
from modules import call_in, module_of

IMPORTS = """\
import hashlib, io, os, sys, urllib.request
from pathlib import Path
import flask, requests, torch, wget
from fastapi import Depends, FastAPI
from huggingface_hub import hf_hub_download
from transformers import AutoModel, pipeline
"""
PINNED = "revision='9f8e7d6c5b4a39281706f5e4d3c2b1a098765432'"


def origin(text: str) -> tuple[str, str] | None:
    """The code and the words for what the argument of `here` comes from."""
    module = module_of(IMPORTS + text)
    [here] = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "here"]
    found = module.provenance.foreign(here.args[0].value)
    return (module.code(found.node), found.what) if found is not None else None


class TestProvenance:
    @pytest.mark.parametrize(
        ("text", "code", "what"),
        [
            ("here(wget.download(url))\n", "wget.download(url)", "data from `wget.download`"),
            (
                "here(io.BytesIO(requests.get(url).content))\n",
                "requests.get(url)",
                "data from `requests.get`",
            ),
            (
                "p, _ = urllib.request.urlretrieve(url)\nhere(p)\n",
                None,
                "data from `urllib.request.urlretrieve`",
            ),
            (
                "torch.hub.download_url_to_file(url, path)\nhere(path)\n",
                "torch.hub.download_url_to_file(url, path)",
                "data from `torch.hub.download_url_to_file`",
            ),
            (
                "def get():\n    return wget.download(url)\nhere(get())\n",
                None,
                "data from `wget.download`",
            ),
            ("here(Path(root) / input())\n", "input()", "a file that `input` asks for"),
            ("here(sys.argv[1])\n", "sys.argv[1]", "a file that the command line names"),
            ("here(flask.request.files['x'])\n", "flask.request.files['x']", "data from a client"),
            (
                "app = FastAPI()\n@app.post('/')\ndef load(file):\n    here(file.file)\n",
                "file",
                "data from a client",
            ),
        ],
    )
    def test_where_it_comes_in_and_what_it_is(self, text: str, code: str | None, what: str) -> None:
        found = origin(text)
        assert found is not None
        assert found[1] == what
        assert code is None or found[0] == code

    @pytest.mark.parametrize(
        "text",
        [
            "here(path)\n",
            "here(os.path.join(root, 'x'))\n",
            f"here(hf_hub_download('a/b', 'c', {PINNED}))\n",
            "here(hf_hub_download('a/b', 'c', **options))\n",
            "def f():\n    p = wget.download(url)\n    hashlib.sha256(p)\n    here(p)\n",
            "def f():\n    p = wget.download(url)\n    check_md5(p)\n    here(p)\n",
            "here(path)\ntorch.hub.download_url_to_file(url, path)\n",
            "def f():\n    torch.hub.download_url_to_file(url, path)\ndef g():\n    here(path)\n",
            "app = FastAPI()\n@app.post('/')\ndef load(file=Depends(stored)):\n    here(file)\n",
            "def f(p):\n    here(p)\nf(wget.download(a))\nf(b)\n",
        ],
    )
    def test_what_is_not_certain_is_not_from_outside(self, text: str) -> None:
        assert origin(text) is None


class TestHub:
    @pytest.mark.parametrize(
        ("call", "repository"),
        [
            ("AutoModel.from_pretrained('gpt2')", "gpt2"),
            ("AutoModel.from_pretrained(pretrained_model_name_or_path='a/b')", "a/b"),
            ("Anything.from_pretrained('a/b', trust_remote_code=True)", "a/b"),
            ("pipeline('summarization', 'a/b')", "a/b"),
            ("pipeline('summarization')", None),
            ("Anything.from_pretrained('a/b')", None),
            ("AutoModel.from_pretrained('./gpt2')", None),
            ("AutoModel.from_pretrained('models/gpt2')", None),
            ("AutoModel.from_pretrained('mine')", None),  # the file has written it
            ("AutoModel.from_pretrained(*names)", None),
            ("AutoModel.from_pretrained()", None),
            ("AutoModel.from_pretrained('a/b', local_files_only=True)", None),
        ],
    )
    def test_which_repository_a_call_names(self, call: str, repository: str | None) -> None:
        module = module_of(f"{IMPORTS}{call}\nmodel.save_pretrained('mine')\n")
        taken = module.hub.taken_by(call_in(module, call))
        assert (taken.repository if taken is not None else None) == repository

    @pytest.mark.parametrize(
        ("given", "pinned"),
        [
            (PINNED, True),
            ("revision=unseen", True),
            ("revision='main'", False),
            ("revision=None", False),
            ("other='9f8e7d6'", False),
        ],
    )
    def test_a_revision_pins_if_it_is_a_commit_or_out_of_sight(self, given: str, pinned: bool) -> None:
        module = module_of(f"{IMPORTS}f({given})\n")
        assert module.hub.is_pinned(module.tree.all(cst.Call)[-1], "revision") is pinned
