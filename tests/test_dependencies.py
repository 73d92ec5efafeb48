"""A project that pins Lightning 1 hears nothing of what Lightning 2 removed."""

from pathlib import Path

import pytest

from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover
from ta_lint.runner import lint_files

OLD = {
    "requirements.txt": "torch\npytorch_lightning==1.9.0\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["lightning>=1.8,<2"]\n',
    "setup.py": 'setup(install_requires=["pytorch-lightning~=1.5", "numpy"])\n',
    "environment.yml": "dependencies:\n  - pip:\n    - pytorch-lightning==1.0.8\n",
    "environment.yaml": "dependencies:\n  - pytorch-lightning=1.7\n",
    "wav2vec_env.yml": "dependencies:\n  - pip:\n    - pytorch-lightning==1.6.1\n",
    "setup.cfg": "[options]\ninstall_requires =\n    lightning-flash[image]\n",
    "requirements_dev.txt": "pytorch-lightning\npytorch-lightning-bolts\n",
    "conda.yaml": "dependencies:\n  - pytorch-lightning=1.7\n",
    "requirements-gpu.txt": "torch\npytorch_lightning==1.9.0\n",
    "dev_requirements.txt": "torch\npytorch_lightning==1.9.0\n",
    "README.md": "# Setup\n```\npip3 install -q torch 'pytorch-lightning==1.9.5' numpy\n```\n",
}
NEW = {
    "requirements.txt": "lightning-utilities<0.9\npytorch_lightning>=1.9.0\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["lightning", "torch"]\n',
    "setup.py": 'setup(install_requires=["lightning>=2.0,<2.7"])\n',
    "environment.yml": "dependencies:\n  - pytorch-lightning=2.4\n",
    "conda-env.yml": "dependencies:\n  - pytorch-lightning>=1.7\n",
    "environment.yml.bak": "dependencies:\n  - pytorch-lightning=1.7\n",
    "setup.cfg": "[options]\ninstall_requires =\n    lightning[extra]!=2.6.2\n",
    "README.md": "With lightning<2 it was slow.\n\n`pip install lightning>=2.1`\n",
}


def is_pinned(folder: Path, file: str, text: str) -> bool:
    (folder / file).write_text(text)
    inner = folder / "package" / "models"
    inner.mkdir(parents=True)
    return Configs(Options(), folder).of_directory(inner).old_frameworks == {"lightning"}


@pytest.mark.parametrize(("file", "text"), OLD.items(), ids=OLD)
def test_a_release_before_2_is_known(file: str, text: str, tmp_path: Path) -> None:
    assert is_pinned(tmp_path, file, text)


@pytest.mark.parametrize(("file", "text"), NEW.items(), ids=NEW)
def test_a_project_that_allows_2_is_on_2(file: str, text: str, tmp_path: Path) -> None:
    assert not is_pinned(tmp_path, file, text)


TORCH = {
    "requirements.txt": ("numpy\npytorch==1.4.1\n", (1, 4)),
    "requirements-gpu.txt": ("torch==1.9.0+cu111\n", (1, 9)),
    "environment.yml": ("dependencies:\n  - pytorch=1.8.0=py3.7_cuda10.2_cudnn7.6.5_0\n", (1, 8)),
    "environment.yaml": (
        "dependencies:\n  - python=3.8\n  - pytorch::pytorch==1.13\n  - torchvision=0.9\n",
        (1, 13),
    ),
    "conda.yml": ('dependencies:\n  - "pytorch>=2.1"\n  - pip:\n    - torchmetrics==0.7\n', (2, 1)),
    "my_env.yml": ("dependencies:\n  - pip:\n    - torch==1.10.2\n", (1, 10)),
    "env.yml": ("dependencies:\n  - pytorch\n  - pytorch-cuda=11.7\n  - pytorch-lightning=1.9\n", None),
}


@pytest.mark.parametrize(("file", "found"), TORCH.items(), ids=TORCH)
def test_the_torch_of_a_list_is_what_the_code_is_for(
    file: str, found: tuple[str, tuple[int, int] | None], tmp_path: Path
) -> None:
    text, target = found
    (tmp_path / file).write_text(text)
    assert Configs(Options(), tmp_path).of_directory(tmp_path).target_torch == target


def test_each_list_of_a_folder_of_requirements_is_read(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "base.txt").write_text("torch\n")
    (tmp_path / "requirements" / "train.txt").write_text("pytorch-lightning==1.6\n")
    assert Configs(Options(), tmp_path).of_directory(tmp_path).old_frameworks == {"lightning"}


def test_the_settings_of_a_project_keep_what_it_pins(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\ndependencies = ["lightning<2"]\n[tool.ta]\nselect = ["TA674"]\n'
    assert is_pinned(tmp_path, "pyproject.toml", text)


def test_transformers_before_4_46_is_known(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "accelerate==0.24\ntransformers==4.36.2\nsentence-transformers>=2\n"
    )
    assert Configs(Options(), tmp_path).of_directory(tmp_path).old_frameworks == {"transformers"}
    (tmp_path / "requirements.txt").write_text("transformers>=4.36.2\n")
    assert not Configs(Options(), tmp_path).of_directory(tmp_path).old_frameworks


@pytest.mark.parametrize(
    ("bound", "is_old"),
    [
        ('"4.36.2"', True),
        ('{ version = "4.36.2", optional = true }', True),
        ('"~4.36.2"', True),
        ('"^3.1"', True),
        ('"^4.36"', False),
        ('">=4.30,<4.40"', True),
        ('"*"', False),
        ('{ git = "https://example.org/transformers" }', False),
        (f'"^{"9" * 5000}"', False),
    ],
)
def test_poetry_pins_too(bound: str, is_old: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\ntransformers = {bound}\n")
    found = Configs(Options(), tmp_path).of_directory(tmp_path).old_frameworks
    assert found == ({"transformers"} if is_old else frozenset())


def test_an_extra_pins_too(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\n[project.optional-dependencies]\ntrain = ["transformers==4.36.2"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    assert Configs(Options(), tmp_path).of_directory(tmp_path).old_frameworks == {"transformers"}


def test_a_folder_below_has_a_list_of_its_own(tmp_path: Path) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text("import transformers\n")
    (tmp_path / "old" / "requirements.txt").write_text("transformers==4.43.4\n")
    files = discover([tmp_path], Configs(Options(), tmp_path), tmp_path)
    assert {file.name: file.config.old_frameworks for file in files} == {
        "new/train.py": frozenset(),
        "old/train.py": {"transformers"},
    }


OF_TRANSFORMERS = {
    "README.md": "## Requirements\n\n- Python 3.9\n- transformers==4.28.1\n",
    "README.rst": "Requirements\n============\n\n* Transformers 4.28.1\n",
    "readme.md": "| package | version |\n|---|---|\n| transformers | 4.28.1 |\n",
    "README_zh.md": "```\ntorch==1.13.1\ntransformers == 4.28.1\n```\n",
    "README.txt": "1. huggingface transformers v4.30\n2. torch\n",
    "README": "It was tested with torch==2.0 and `transformers==4.31.0`.\n",
}
OF_LATER_TRANSFORMERS = {
    "README.md": "- transformers>=4.28.1\n- transformers 4.28+\n",
    "README.rst": "* Transformers 4.28 or later\n",
    "readme.md": "We moved from transformers 4.28.1, which was slow.\n",
    "README_zh.md": "transformers==4.28.1 or transformers==4.51.0\n- transformers==4.51.0\n",
    "README.txt": "- transformers==4.47.1\n",
    "requirements.txt": "transformers==4.49.0\n",
    "CHANGES.md": "- transformers==4.28.1\n",
}


def asks_for_old_transformers(folder: Path, file: str, text: str) -> bool:
    (folder / file).write_text(text)
    return "transformers" in Configs(Options(), folder).of_directory(folder).old_frameworks


@pytest.mark.parametrize("file", OF_TRANSFORMERS)
def test_a_readme_that_names_an_old_release_pins_it(file: str, tmp_path: Path) -> None:
    """D22: TA657 where only the README pins an older release."""
    assert asks_for_old_transformers(tmp_path, file, OF_TRANSFORMERS[file])


@pytest.mark.parametrize("file", OF_LATER_TRANSFORMERS)
def test_a_readme_that_allows_a_new_release_pins_nothing(file: str, tmp_path: Path) -> None:
    """D22: nor does an exact release that is new enough, though no rule speaks of it."""
    assert not asks_for_old_transformers(tmp_path, file, OF_LATER_TRANSFORMERS[file])


def test_what_the_readme_pins_holds_for_the_files_below_and_a_requirement_comes_first(tmp_path: Path) -> None:
    """D22: the compute_loss of an old release takes no number of items."""
    trainer = "from transformers import Trainer\n\n\nclass Own(Trainer):\n    def compute_loss(self, model, inputs, return_outputs=False):\n        return model(**inputs).loss\n"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(trainer)

    def found() -> list[str]:
        files = discover([tmp_path], Configs(Options(select=["TA657"]), tmp_path), tmp_path)
        return [finding.rule for _, findings in lint_files(files, 1) for finding in findings]

    assert found() == ["TA657"]
    (tmp_path / "README.md").write_text("- transformers==4.28.1\n")
    assert found() == []
    (tmp_path / "requirements.txt").write_text("transformers>=4.50\n")
    assert found() == ["TA657"]
