"""The GitHub Action as a runner runs it: each shell step of `action.yml` by bash, with the inputs in its environment."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {name: step["run"] for name, step in STEPS.items() if "run" in step}
TOOLS = Path(sys.executable).parent

CLEAN = "import torch\n\nmodel = torch.nn.Linear(2, 2)\noptimizer = torch.optim.AdamW(model.parameters())\n"
BUGGY = CLEAN.replace("AdamW(model.parameters())", "Adam(model.parameters(), weight_decay=0.1)")
HOSTILE = """$(touch pwned) `touch pwned`; touch pwned # ' && touch pwned "${{ github.token }}" """


@dataclass(frozen=True)
class Job:
    """How a run of the action ended: status of its last step, outputs, log, summary, and whether it uploads."""

    status: int
    outputs: dict[str, str]
    log: str
    summary: str
    uploads: bool


class Runner:
    """Runs the steps one after another, as GitHub does, those that use other actions left out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def step(self, name: str, cwd: Path, context: dict[str, str]) -> tuple[int, dict[str, str], str, str]:
        """Exit status, outputs, log and summary of one shell step; `context` is what its expressions stand for."""
        files = {key: self._folder / key for key in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        given = {
            key: re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda match: context.get(match[1], ""), value)
            for key, value in STEPS[name].get("env", {}).items()
        }
        script = self._folder / "step.sh"
        script.write_text(SCRIPTS[name])
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
            cwd=cwd,
            env={
                **os.environ,
                **{key: str(file) for key, file in files.items()},
                "RUNNER_TEMP": str(self._folder),
                "GITHUB_ACTION_PATH": str(ROOT),
                "XDG_CACHE_HOME": str(self._folder / "pip"),
                "XDG_STATE_HOME": str(self._folder / "state"),
                **given,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=300,
        )
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        return ran.returncode, outputs, ran.stdout, files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the step that installs hands on: a fresh environment with this checkout in it."""
    folder = tmp_path_factory.mktemp("runner temp")
    python = sys.base_prefix + "/bin/python3"
    status, outputs, log, _ = Runner(folder).step(
        "Install ta-lint", folder, {"steps.python.outputs.python-path": python}
    )
    assert status == 0, log
    return outputs


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    (folder / ".git").mkdir(parents=True)
    (folder / "train.py").write_text(BUGGY)
    (folder / "fine.py").write_text(CLEAN)
    return folder


def action(installed: dict[str, str], project: Path, cwd: str = ".", **inputs: str) -> Job:
    """The action after its installation; inputs are named with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    assert named.keys() <= ACTION["inputs"].keys()
    context = {f"inputs.{name}": entry["default"] for name, entry in ACTION["inputs"].items()}
    context |= {f"inputs.{name}": value for name, value in named.items()}
    context |= {f"steps.install.outputs.{name}": value for name, value in installed.items()}
    runner = Runner(project.parent)
    status, outputs, log, summary = runner.step("Lint", project / cwd, context)
    if status != 0:
        return Job(status, outputs, log, summary, uploads=False)
    context |= {f"steps.lint.outputs.{name}": value for name, value in outputs.items()}
    assert Path(outputs["sarif-file"]).is_file()
    status, _, judged, _ = runner.step("Judge", project, context)
    return Job(status, outputs, log + judged, summary, uploads=context["inputs.upload-sarif"] == "true")


def found(job: Job) -> list[str]:
    """`uri:line rule` of each result in the log that would be uploaded."""
    (run,) = json.loads(Path(job.outputs["sarif-file"]).read_text())["runs"]
    places = [(result["locations"][0]["physicalLocation"], result["ruleId"]) for result in run["results"]]
    return [
        f"{place['artifactLocation']['uri']}:{place['region']['startLine']} {rule}" for place, rule in places
    ]


def test_it_is_an_action_by_the_schema_of_github() -> None:
    command = [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "action.yml"]
    ran = subprocess.run(command, capture_output=True, text=True)  # type: ignore[arg-type]
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_its_scripts_are_sound_shell(name: str) -> None:
    command = [TOOLS / "shellcheck", "--shell=bash", "--exclude=SC2153", "-"]  # PATHS is not paths
    ran = subprocess.run(command, input=SCRIPTS[name], capture_output=True, text=True)  # type: ignore[arg-type]
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_script_holds_an_expression() -> None:
    """GitHub puts the text of an expression into the script before a shell reads it."""
    assert not {name for name, script in SCRIPTS.items() if "${{" in script}


def test_every_input_is_used_and_every_output_of_a_step_is_made() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == ACTION["inputs"].keys()
    for step, output in re.findall(r"steps\.(install|lint)\.outputs\.([\w-]+)", text):
        (script,) = [entry["run"] for entry in STEPS.values() if entry.get("id") == step]
        assert f'echo "{output}=' in script


def test_it_installs_no_torch(installed: dict[str, str]) -> None:
    packages = {path.name for path in Path(installed["folder"]).rglob("site-packages/*")}
    assert "libcst" in packages
    assert "torch" not in packages


def test_a_clean_project_passes(installed: dict[str, str], project: Path) -> None:
    (project / "train.py").unlink()
    job = action(installed, project)
    assert job.status == 0, job.log
    assert job.outputs["findings"] == "0"
    assert job.outputs["status"] == "0"
    assert found(job) == []
    assert "All checks passed." in job.summary
    assert job.uploads


def test_its_cache_is_its_own(installed: dict[str, str], project: Path) -> None:
    """A4: neither the project nor the runner's user sees anything of it."""
    job = action(installed, project)
    assert found(job) == ["train.py:4 TA401"]
    assert not (project / ".ta_cache").exists()
    assert list(Path(installed["folder"]).glob("cache/findings-*"))
    assert not list(project.parent.rglob("cache.key"))


def test_findings_fail_the_job_after_the_upload(installed: dict[str, str], project: Path) -> None:
    job = action(installed, project)
    assert job.status == 1
    assert found(job) == ["train.py:4 TA401"]
    assert job.outputs["findings"] == job.outputs["status"] == "1"
    assert "train.py:4:13" in job.log
    assert "::error title=ta-lint::findings: 1" in job.log
    assert re.search(r"1  TA401  warning  adam-with-weight-decay", job.summary)
    names = list(STEPS)
    assert names.index("Lint") < names.index("Upload to code scanning") < names.index("Judge")


def test_without_an_upload_the_pull_request_is_annotated(installed: dict[str, str], project: Path) -> None:
    job = action(installed, project, upload_sarif="false")
    assert not job.uploads
    assert job.status == 1
    assert re.search(r"^::warning .*file=train.py,line=4", job.log, re.MULTILINE)


def test_inputs_become_options(installed: dict[str, str], project: Path) -> None:
    (project / "other.toml").write_text('[tool.ta]\nignore = ["TA401"]\n')
    for inputs in (
        {"ignore": "TA401"},
        {"select": "loop,TA7"},
        {"fail_level": "error"},
        {"config": "other.toml"},
        {"args": "--exit-zero"},
        {"args": "--ignore 'TA401'\n--no-unsafe-fixes"},
        {"paths": "fine.py"},
    ):
        job = action(installed, project, **inputs)
        assert job.status == 0, f"{inputs}: {job.log}"
    job = action(installed, project, extend_select="TA4", target_torch="2.3", format="concise")
    assert job.status == 1
    assert re.search(r"^train.py:4:13: TA401 warning", job.log, re.MULTILINE)


def test_paths_may_have_spaces_and_there_may_be_several(installed: dict[str, str], project: Path) -> None:
    (project / "my models").mkdir()
    (project / "my models" / "a loop.py").write_text(BUGGY)
    job = action(installed, project, paths="my models\n\ntrain.py\n")
    assert found(job) == ["my%20models/a%20loop.py:4 TA401", "train.py:4 TA401"]
    inside = action(installed, project, cwd="my models", paths="a loop.py")
    assert found(inside) == ["my%20models/a%20loop.py:4 TA401"], (
        "relative to the repository, as GitHub wants it"
    )


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"select": "TA999999"}, "TA999999"),
        ({"paths": "missing.py"}, "missing.py: no such file or folder"),
        ({"paths": "\n"}, "the input paths names nothing"),
        ({"args": "--nonsense"}, "unrecognized arguments: --nonsense"),
        ({"args": "'open"}, "the input args has an open quote"),
        ({"upload_sarif": "yes"}, "the input upload-sarif is neither true nor false"),
        ({"format": "html"}, "the input format is none of text, concise and github"),
    ],
)
def test_wrong_usage_says_what_is_wrong_and_uploads_nothing(
    installed: dict[str, str], project: Path, inputs: dict[str, str], told: str
) -> None:
    job = action(installed, project, **inputs)
    assert job.status == 2
    assert job.outputs == {"status": "2"}
    assert told in job.log
    assert re.search(r"^::error title=ta-lint::", job.log, re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    "paths select extend-select ignore config baseline target-torch fail-level args format upload-sarif".split(),
)
def test_no_input_is_run_as_shell(installed: dict[str, str], project: Path, name: str) -> None:
    job = action(installed, project, **{name.replace("-", "_"): HOSTILE})
    assert job.status == 2, job.log
    assert not list(project.parent.rglob("pwned"))


def test_no_path_is_an_option(installed: dict[str, str], project: Path) -> None:
    job = action(installed, project, paths="--output=stolen")
    assert job.status == 2
    assert not (project / "stolen").exists()


def test_a_hostile_version_is_refused(tmp_path: Path) -> None:
    for version in (HOSTILE, "1.0 --index-url=https://example.org", "1.0 @ file:///tmp/x"):
        status, _, log, _ = Runner(tmp_path).step("Install ta-lint", tmp_path, {"inputs.version": version})
        assert status == 2
        assert "::error title=ta-lint::the input version is not a version" in log
    assert not list(tmp_path.rglob("pwned"))


def test_an_old_python_is_told_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    context = {"steps.python.outputs.python-path": str(old)}
    status, _, log, _ = Runner(tmp_path).step("Install ta-lint", tmp_path, context)
    assert status == 2
    assert "Python 3.11 or newer is needed: set the input python-version" in log


def test_a_line_of_a_linted_file_cannot_command_the_runner(installed: dict[str, str], project: Path) -> None:
    text = BUGGY.replace("weight_decay=0.1)", "weight_decay=0.1)  # ##[add-mask]x")
    (project / "train.py").write_text(text)
    shutil.copy(project / "train.py", project / "::error::x.py")
    log = action(installed, project, format="concise").log
    stopped = re.findall(r"^::stop-commands::(\w+)\n(.*?)^::\1::$", log, re.MULTILINE | re.DOTALL)
    assert len(stopped) == 2
    outside = re.sub(r"^::stop-commands::(\w+)\n(.*?)^::\1::$", "", log, flags=re.MULTILINE | re.DOTALL)
    assert "x.py" in stopped[1][1]
    assert "x.py" not in outside
