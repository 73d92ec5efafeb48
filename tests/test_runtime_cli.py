"""The command `ta-runtime` as a user meets it: `run` and `audit`."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import commands
import pytest
from commands import Ran, at_once
from sarif_validator import unexplained

from ta_runtime.cli import main

ADAM = """\
import sys
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.1)
for step in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CLEAN = ADAM.replace(", weight_decay=0.1", "")
NETS = """\
import torch

print("imported")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)


class Sized(Net):
    def __init__(self, size):
        super().__init__()


net = Net()
number = 3


def build():
    print("building")
    model = Net()
    return model, torch.optim.Adam(model.parameters(), weight_decay=0.1)


def broken():
    raise KeyError("checkpoint")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def ta_runtime(project: Path) -> Callable[..., Ran]:
    """The command in its own process, in the project's folder."""
    return partial(commands.ta_runtime, project)


def status_of(words: list[str]) -> int:
    """The exit status of the command in this process."""
    try:
        return main(words)
    except SystemExit as error:  # from argparse
        return int(str(error.code))


def rules(document: str) -> list[str]:
    return [item["rule"] for item in json.loads(document)]


# -- run ------------------------------------------------------------------------------------------------------


def test_run_tells_findings_on_stderr_and_leaves_stdout_and_the_status_to_the_script(
    project: Path, ta_runtime: Callable[..., Ran]
) -> None:
    (project / "train.py").write_text(ADAM + "print(sys.argv, __name__, sys.path[0])\n")
    ran = ta_runtime("run", "train.py", "--every", "5", "-q", "--", "--output")
    assert ran.returncode == 0
    assert ran.stdout == f"['train.py', '--every', '5', '-q', '--', '--output'] __main__ {project}\n"
    live, heading, *rest = ran.stderr.splitlines()
    assert live.startswith("ta-runtime: step 0: train.py:5: TA401 warning: ")
    assert heading.split() == ["rule", "line", "step", "times"]
    assert "ta-runtime: Found 1 warning in 1 file." in rest
    assert rest[-1].startswith("ta-runtime: too few steps to judge TA102, ")
    assert [path.name for path in sorted(project.iterdir())] == [".git", "train.py"]


def test_a_table_of_nearly_the_right_name_is_told_once(project: Path, ta_runtime: Callable[..., Ran]) -> None:
    """N6"""
    (project / "pyproject.toml").write_text("[tool.ta-runtime]\nignore = ['TA401']\n")
    (project / "train.py").write_text(ADAM)
    ran = ta_runtime("run", "train.py")
    warning = f"{project / 'pyproject.toml'}: [tool.ta-runtime] is not read; put settings into [tool.ta]"
    assert ran.stderr.splitlines()[0] == f"ta-runtime: warning: {warning}"
    assert ran.stderr.count("is not read") == 1
    assert ta_runtime("run", "--quiet", "train.py").stderr == ""


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_can_be_had_without_a_terminal(
    project: Path,
    ta_runtime: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    no_color: str,
    coloured: bool,
) -> None:
    """N7"""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", no_color)
    (project / "train.py").write_text(ADAM)
    ran = ta_runtime("run", "train.py")
    assert "TA401" in ran.stderr
    assert ("\x1b[" in ran.stderr) is coloured


def test_a_module_runs_as_under_python(project: Path, ta_runtime: Callable[..., Ran]) -> None:
    package = project / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(ADAM + "print(sys.argv[1:], __package__, __spec__.name)\n")
    (package / "__main__.py").write_text("from . import train\n")
    ran = ta_runtime("run", "--quiet", "-m", "pkg.train", "--lr", "3", "-m")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "['--lr', '3', '-m'] pkg pkg.train\n", "")
    ran = ta_runtime("run", "--format=concise", "--quiet", "-m", "pkg")
    assert "pkg/train.py:5:13: TA401" in ran.stderr
    ran = ta_runtime("run", "-m", "pkg.other")
    assert (ran.returncode, ran.stderr) == (
        2,
        "ta-runtime: error: -m pkg.other: there is no module pkg.other here\n",
    )


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_a_document_on_stdout_is_nothing_but_the_document(
    form: str, project: Path, ta_runtime: Callable[..., Ran], validate_sarif: Callable[[str], list[str]]
) -> None:
    noise = (
        "import atexit, os, subprocess\n"
        "print('from python')\n"
        "os.write(1, b'from the descriptor\\n')\n"
        "subprocess.run(['echo', 'from a process'])\n"
        "atexit.register(print, 'at exit')\n"
    )
    (project / "train.py").write_text(noise + ADAM)
    ran = ta_runtime("run", "--format", form, "train.py")
    assert ran.returncode == 0
    for line in ("from python", "from the descriptor", "from a process", "at exit"):
        assert line in ran.stderr
    if form == "json":
        assert rules(ran.stdout) == ["TA401"]
    else:
        [run] = json.loads(ran.stdout)["runs"]
        assert [result["ruleId"] for result in run["results"]] == ["TA401"]
        assert run["automationDetails"]["id"] == "ta-runtime/"
        assert not unexplained(validate_sarif(ran.stdout))


def test_the_scripts_own_exit_status_wins_and_fail_level_speaks_if_it_is_0(
    project: Path, ta_runtime: Callable[..., Ran]
) -> None:
    raised = "line 11, in <module>\n    raise IndexError('beyond')\nIndexError: beyond\n"
    endings = {
        "sys.exit(7)": (7, ""),
        "sys.exit()": (1, ""),
        "sys.exit('no data')": (1, "no data\n"),
        "raise IndexError('beyond')": (1, raised),
        "raise KeyboardInterrupt": (-signal.SIGINT, "KeyboardInterrupt\n"),
    }
    for number, ending in enumerate(endings):
        (project / f"train{number}.py").write_text(ADAM + ending + "\n")
    names = [f"train{number}.py" for number in range(len(endings))]
    runs = at_once([partial(ta_runtime, "run", "--fail-level=warning", name) for name in names])
    for ran, (ending, (status, told)) in zip(runs, endings.items(), strict=True):
        assert ran.returncode == status, ending
        assert told in ran.stderr
        assert "ta_runtime/" not in ran.stderr
        assert "TA401" in ran.stderr


def test_a_script_that_does_not_compile_is_shown_as_python_shows_it(
    project: Path, ta_runtime: Callable[..., Ran]
) -> None:
    (project / "train.py").write_text("import torch\nfor\n")
    ran = ta_runtime("run", "train.py")
    assert ran.returncode == 1
    assert f'File "{project}/train.py", line 2\n    for\n' in ran.stderr
    assert "ta_runtime/" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "--every", "3"], "name a script or module"),
        (["run", "missing.py"], "missing.py: no such file"),
        (["run", "pkg"], "pkg: is a folder"),
        (["run", "-m", "pkg.other"], "-m pkg.other: there is no module pkg.other here"),
        (
            ["run", "--output", "none/ta.sarif", "train.py"],
            "cannot write none/ta.sarif: there is no folder none",
        ),
        (
            ["run", "--baseline", "none.json", "train.py"],
            "none.json does not exist; write it with --update-baseline",
        ),
        (["run", "--update-baseline", "train.py"], "name the file with --baseline FILE"),
        (["run", "--select", "TAX", "train.py"], "TAX"),
        (["run", "--every", "often", "train.py"], "'often' is not a number of steps"),
        (
            ["run", "--select", "TA4O1", "train.py"],
            "--select: no rule, prefix, tag or alias is called 'TA4O1'; did ",
        ),
        (["run", "--select", "TA910", "train.py"], "--select: a run sees none of these rules"),
        (["run", "--selct", "TA401", "train.py"], "unrecognized arguments: --selct; did you mean --select?"),
        (["run", "--baseline", "train.py", "train.py"], "train.py is corrupt ("),
        (["train.py", "--lr", "3"], "to watch a script, write `ta-runtime run train.py`"),
        (["rnu", "train.py"], "no command is called 'rnu'; did you mean run?"),  # N19
    ],
)
def test_wrong_usage_is_told_before_the_script_runs(
    words: list[str],
    told: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (project / "pkg").mkdir()
    (project / "train.py").write_text("print('ran')\n")
    monkeypatch.chdir(project)
    status = status_of(words)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert told in err.splitlines()[-1]


def test_output_takes_its_format_from_the_name_or_the_option(
    project: Path, ta_runtime: Callable[..., Ran]
) -> None:
    (project / "train.py").write_text(ADAM + "print('mine')\n")
    ran = ta_runtime("run", "--output", "ta.json", "train.py")
    assert ran.stdout == "mine\n"
    assert "ta-runtime: Found 1 warning in 1 file. The report is in ta.json.\n" in ran.stderr
    assert rules((project / "ta.json").read_text()) == ["TA401"]
    ta_runtime("run", "--output", "ta.log", "--format", "github", "train.py")
    assert (project / "ta.log").read_text().startswith("::warning file=train.py,line=5,")


def test_a_script_that_enables_the_audit_itself_still_runs(
    project: Path, ta_runtime: Callable[..., Ran]
) -> None:
    (project / "train.py").write_text(
        "import ta_runtime\nta_runtime.enable(output='own.sarif')\n"
        + ADAM
        + "print(len(ta_runtime.disable()))\n"
    )
    ran = ta_runtime("run", "train.py")
    assert (ran.returncode, ran.stdout) == (0, "1\n")
    assert "`ta-runtime run` watches already" in ran.stderr
    assert not (project / "own.sarif").exists()


def test_what_is_pickled_or_run_at_exit_finds_its_main_module(
    project: Path, ta_runtime: Callable[..., Ran]
) -> None:
    (project / "train.py").write_text(
        "import atexit, pickle, multiprocessing as mp\n"
        "class State: pass\n"
        "def work(queue): queue.put(State())\n"
        "if __name__ == '__main__':\n"
        "    atexit.register(lambda: print(pickle.loads(pickle.dumps(State())).__class__))\n"
        "    context = mp.get_context('spawn')\n"
        "    queue = context.SimpleQueue()\n"
        "    process = context.Process(target=work, args=(queue,))\n"
        "    process.start(); print(queue.get().__class__); process.join()\n"
    )
    ran = ta_runtime("run", "--format", "concise", "train.py")
    assert ran.stdout == "<class '__main__.State'>\n" * 2
    assert ran.stderr == "No training step was seen: no optimizer stepped in this process.\n"


def test_a_baseline_keeps_what_a_run_cannot_judge(project: Path, ta_runtime: Callable[..., Ran]) -> None:
    (project / "train.py").write_text(ADAM)
    (project / "pyproject.toml").write_text("[tool.ta]\nbaseline = 'known.json'\n")
    ran = ta_runtime("run", "--update-baseline", "train.py")
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        0,
        "ta-runtime: recorded 1 finding in known.json",
    )
    known = json.loads((project / "known.json").read_text())
    assert [entry["rule"] for entry in known["findings"]] == ["TA401"]
    gone = {"rule": "TA102", "fingerprint": "0:1", "message": "gone", "path": "train.py"}
    known["findings"] += [
        gone,
        {**gone, "fingerprint": "1:1", "path": "other.py"},  # a file that does not run here
        {**gone, "fingerprint": "2:1", "rule": "TA600"},  # the linter's
        {**gone, "fingerprint": "3:1", "rule": "TA401"},  # the linter's as well
    ]
    (project / "known.json").write_text(json.dumps(known))
    ran = ta_runtime("run", "--fail-level", "note", "train.py")
    assert ran.returncode == 0
    assert "All checks passed (1 in the baseline)." in ran.stderr
    assert (
        "ta-runtime: 1 entry of known.json matches nothing in this run; --update-baseline drops it"
        in ran.stderr
    )
    ta_runtime("run", "--update-baseline", "train.py")
    kept = json.loads((project / "known.json").read_text())["findings"]
    assert [entry["rule"] for entry in kept] == ["TA102", "TA401", "TA401", "TA600"]
    assert [entry["path"] for entry in kept if entry["rule"] == "TA102"] == ["other.py"]
    (project / "train.py").write_text(ADAM + "raise ValueError\n")
    assert "matches nothing" not in ta_runtime("run", "train.py").stderr


def test_ctrl_c_ends_the_run_with_its_report(project: Path) -> None:
    (project / "train.py").write_text(ADAM + "import time\nprint('now', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "ta_runtime", "run", "--output", "ta.json", "train.py"]
    with subprocess.Popen(
        command,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a shell's background job ignores it
    ) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        timer.cancel()
    assert process.returncode == -signal.SIGINT  # of which a shell makes 130
    assert "not seen: anything after step 3, in which the run was interrupted." in err
    assert rules((project / "ta.json").read_text()) == ["TA401"]


def test_a_script_that_nobody_reads_any_more_ends_as_under_python(project: Path) -> None:
    (project / "train.py").write_text(ADAM + "for line in range(100_000): print(line)\n")
    command = f"{sys.executable} -m ta_runtime run train.py | head -1"
    ran = subprocess.run(command, shell=True, cwd=project, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "0\n"
    assert "\nBrokenPipeError: " in ran.stderr
    assert "ta-runtime: Found 1 warning in 1 file.\n" in ran.stderr
    assert "defect" not in ran.stderr


def test_a_run_without_a_step_says_so(project: Path, ta_runtime: Callable[..., Ran]) -> None:
    (project / "train.py").write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    ran = ta_runtime("run", "train.py", "--lr", "3")
    assert ran.returncode == 2
    usage, complaint, last = ran.stderr.splitlines()
    assert (usage, complaint) == (
        "usage: train.py [-h]",
        "train.py: error: unrecognized arguments: --lr 3",
    )
    assert last == "ta-runtime: No training step was seen: no optimizer stepped in this process."


def test_a_script_finds_itself_and_its_neighbours(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "sibling.py").write_text("name = 'sibling'\n")
    (project / "sub" / "läuft gut.py").write_text(
        ADAM + "import os, sibling\nprint(os.path.exists(__file__), sibling.name, sys.argv)\n"
    )
    words = ("-m", "ta_runtime", "run", "sub/läuft gut.py", "--format", "json")
    ran = commands.python(project, *words, PYTHONIOENCODING="utf-8")
    assert (ran.returncode, ran.stdout) == (0, "True sibling ['sub/läuft gut.py', '--format', 'json']\n")
    assert "step 0: sub/läuft gut.py:5: TA401" in ran.stderr


def test_on_a_terminal_lines_are_coloured_and_stay_clear_of_progress_bars(project: Path) -> None:
    pytest.importorskip("tqdm")
    (project / "train.py").write_text(
        ADAM.replace("range(3)", "tqdm(range(3))").replace(
            "import torch", "import torch\nfrom tqdm import tqdm"
        )
    )

    def shown(**environment: str) -> str:
        leader, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (24, 60))
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        process = subprocess.Popen(
            [sys.executable, "-m", "ta_runtime", "run", "train.py"],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stderr=terminal,
            env={**inherited, "TERM": "xterm", **environment},
        )
        os.close(terminal)
        timer = threading.Timer(60, process.kill)
        timer.start()
        told = b""
        with contextlib.suppress(OSError):  # Linux says so at the end of a terminal
            while part := os.read(leader, 4096):
                told += part
        timer.cancel()
        os.close(leader)
        assert process.wait(10) == 0
        return told.decode()

    colored = shown()
    assert "TA401 \033[1;33mwarning\033[0m: " in colored
    assert re.search(r"[\r\n]ta-runtime: step 0: ", colored)
    assert "\033" not in re.sub(r"\033\[A", "", shown(NO_COLOR="1"))  # but for the bar's own movements
    rows = colored[colored.index("rule") : colored.index("ta-runtime: Found")].splitlines()
    assert max(len(re.sub(r"\033\[[\d;]*m", "", row)) for row in rows) <= 60


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_standard_output_is_an_error(project: Path, ta_runtime: Callable[..., Ran]) -> None:
    (project / "train.py").write_text(ADAM)
    ran = ta_runtime("run", "--format", "json", "train.py", stdout="/dev/full")
    assert ran.returncode == 2
    assert ran.stderr.endswith("ta-runtime: error: cannot write the report: No space left on device\n")


# -- audit ----------------------------------------------------------------------------------------------------


@pytest.fixture
def nets(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nets.py` in the working folder, to be imported by the command in this process."""
    (project / "nets.py").write_text(NETS)
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "nets", raising=False)


@pytest.mark.usefixtures("nets")
@pytest.mark.parametrize("name", ["nets:Net", "nets:net", "nets:build"])
def test_a_clean_model_has_status_0(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["audit", name, "--phase", "static"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("\nAll checks passed.\n")
    assert err == ""


@pytest.mark.usefixtures("nets")
def test_init_checks_the_optimizer_that_the_factory_gives(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", "nets:build", "--phase=init", "--select=TA401"]
    assert status_of(words) == 1
    shown = capsys.readouterr().out
    assert "TA401 warning: " in shown
    line = NETS[: NETS.index("return model, torch.optim")].count("\n") + 1
    assert f" --> nets.py:{line}:19 in build\n" in shown
    assert status_of([*words, "--exit-zero"]) == 0
    assert status_of([*words, "--fail-level=ERROR"]) == 0


def test_without_a_phase_both_are_checked(
    project: Path, ta_runtime: Callable[..., Ran], validate_sarif: Callable[[str], list[str]]
) -> None:
    (project / "nets.py").write_text(NETS)
    ran = ta_runtime("audit", "nets:build", "--select", "TA401", "--format", "sarif", "--fail-level", "note")
    assert ran.returncode == 1
    assert [result["ruleId"] for result in json.loads(ran.stdout)["runs"][0]["results"]] == ["TA401"]
    assert not unexplained(validate_sarif(ran.stdout))


@pytest.mark.usefixtures("nets")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nets"], "write MODULE:OBJECT"),
        (["nuts:Net"], "there is no module nuts in "),
        (["nets:Nat"], "nets has no Nat"),
        (
            ["nets:Sized"],
            "missing a required argument: 'size'; name a function without arguments that builds it",
        ),
        (["nets:number"], "gives a int, which is neither a torch.nn.Module nor (model, optimizer)"),
        (["nets:Net", "--phase", "last"], "argument --phase: invalid choice: 'last' (choose from "),
        (["nets:broken"], "to call it raised KeyError"),
    ],
)
def test_an_object_that_cannot_be_audited_is_told_with_the_remedy(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["audit", *words]) == 2
    assert told in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.usefixtures("nets")
def test_what_is_wrong_with_the_words_is_told_with_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["audit", "nets:Net", "--phse", "init"]) == 2
    assert "unrecognized arguments: --phse; did you mean --phase?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["run"], ["audit"]], ids=str)
def test_help_has_examples_or_exit_statuses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of([*words, "--help"]) == 0
    assert ("exit status:" if words else "examples:") in capsys.readouterr().out


def test_help_loads_no_torch_and_without_torch_it_is_said_what_to_install(project: Path) -> None:
    """Found by a finder that knows no torch, as where it is not installed."""
    (project / "without.py").write_text(
        "import sys\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
        "sys.modules['torch'] = None\n"
        "from ta_runtime.cli import main\n"
        "main(sys.argv[1:]) and sys.exit(2)\n"
    )
    (project / "train.py").write_text("import torch\n")
    for words in (["--help"], ["run", "--help"], ["audit", "--help"], ["--version"]):
        ran = commands.python(project, "without.py", *words)
        assert (ran.returncode, ran.stderr) == (0, "")
    for words in (["run", "train.py"], ["audit", "train:net"]):
        ran = commands.python(project, "without.py", *words)
        assert (ran.returncode, ran.stdout) == (2, "")
        remedy = "there is no torch; install it by `pip install 'ta-lint[runtime]'`"
        assert ran.stderr == f"ta-runtime: error: {remedy}\n"


def test_the_names_of_the_package_are_there_before_torch_is() -> None:
    code = (
        "import sys, ta_runtime\n"
        "assert {*ta_runtime.__all__} <= {*dir(ta_runtime)}\n"
        "assert 'torch' not in sys.modules\n"
        "assert not hasattr(ta_runtime, 'Audits')\n"
        "import ta_runtime.audit.audit\n"
        "from ta_runtime import *\n"
        "assert findings() == disable() == []\n"
        "assert Auditor.__module__ == 'ta_runtime.audit.auditor'\n"
    )
    ran = commands.python(Path.cwd(), "-c", code)
    assert ran.returncode == 0, ran.stderr
