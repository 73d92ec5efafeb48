"""What the pages for users of TrainCheck, torch-module-monitor and fkat promise, each row tried. The page about torch-audit has its own."""

import copy
import re
import shlex
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import commands
import pytest
import torch
from torch import nn

from ta_runtime import cli, monitor
from ta_runtime.runs import Run
from ta_runtime.snapshot import Snapshots

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = cli._parser()[1]


def rows(page: str, header: str) -> list[list[str]]:
    """The rows of the table below this line."""
    _, _, below = (DOCS / page).read_text(encoding="utf-8").partition(f"{header}\n")
    lines = below.partition("\n\n")[0].splitlines()[1:]
    return [line.strip("| ").split(" | ") for line in lines]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


# -- TrainCheck -----------------------------------------------------------------------------------------------

TRAINCHECK = """
    --use-config --config -p -s -a --output-dir --only-instr --instr-descriptors --profiling -d -t --disable-scan-proxy-in-args
    --API-dump-stack-trace -i --use-full-instr --models-to-track --model-tracker-style --tensor-dump-format --no-auto-var-instr
    --use-torch-compile --sampling-interval --warm-up-steps -f -o --disable-relation --enable-relation --disable-precond-sampling
    --precond-sampling-threshold -b -j --check-relation-first --no-html-report --report-wandb --wandb-project --wandb-entity
    --wandb-run-name --wandb-group --wandb-tags --wandb-run-id --report-mlflow --mlflow-experiment --mlflow-run-name -v
    --exit-on-idle --report-interval-seconds
""".split()
"""The options of its four commands."""


@pytest.mark.parametrize("option", TRAINCHECK)
def test_each_option_of_traincheck_has_a_row(option: str) -> None:
    told = [
        words
        for theirs, _ in rows("from-traincheck.md", "| TrainCheck | ta-runtime |")
        for words in quoted(theirs)
    ]
    options = (DOCS / "from-traincheck.md").read_text(encoding="utf-8").partition("## Options")[2]
    told += [
        words
        for line in options.splitlines()
        if line.startswith("| `")
        for words in quoted(line.split(" | ")[0])
    ]
    assert any(option in words.split() for words in told)


def test_each_option_that_the_page_names_is_one_of_ours() -> None:
    text = (DOCS / "from-traincheck.md").read_text(encoding="utf-8")
    for line in quoted(text):
        command = re.match(r"(?:torchrun .* -m |python3 -m )?(?:ta-runtime|ta_runtime) (\w+)", line)
        if command is not None:
            known = {"-m", *COMMANDS[command[1]]._option_string_actions}
            assert known.issuperset(re.findall(r"(?<=\s)-[\w-]+", line[command.end() :])), line


def test_the_commands_of_traincheck_have_ours_that_work(tmp_path: Path) -> None:
    page = (DOCS / "from-traincheck.md").read_text(encoding="utf-8")
    [script] = re.findall(r"```python title=train.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    assert status_of(tmp_path, "collect -o target train.py forget") == 0
    for theirs, ours in rows("from-traincheck.md", "| TrainCheck | ta-runtime |"):
        command = quoted(ours)[0]
        if "--" in command or " -" in command:
            status = status_of(tmp_path, command.removeprefix("ta-runtime "))
            assert status == ("traincheck-check -f target" in theirs), theirs


def status_of(folder: Path, line: str) -> int:
    ran = commands.ta_runtime(folder, *shlex.split(line))
    assert "Traceback" not in ran.stderr
    return ran.returncode


# -- torch-module-monitor -------------------------------------------------------------------------------------

OWNERS = {"storage": monitor.StorageManager, "rcc": monitor.RefinedCoordinateCheck}


def test_each_name_of_torch_module_monitor_is_there() -> None:
    """D38, and the issue's `l2_norm` and `rcc.module`."""
    table = rows("monitor.md", "| torch_module_monitor | ta_runtime.monitor |")
    watched = monitor.ModuleMonitor()
    watched.set_module(model := nn.Linear(2, 2))
    watched.set_reference_module(reference := copy.deepcopy(model))
    rcc = monitor.RefinedCoordinateCheck(watched)
    arguments = {"metric_regex", "metric_aggregation_fn", "before_clip"}
    for theirs, ours in table:
        for name in quoted(theirs) if ours.startswith("the same") else ():
            owner, _, attribute = name.rpartition(".")
            found = (
                hasattr({"rcc": rcc, "storage": watched.storage}[owner], attribute)
                if owner in OWNERS
                else name in arguments or hasattr(watched, name) or attrgetter(name)(monitor) is not None
            )
            assert found, name
    assert (rcc.module, rcc.reference_module, rcc.monitor) == (model, reference, watched)


def test_l2_norm_as_a_metric_is_the_mean_over_rows() -> None:
    watched = monitor.ModuleMonitor(monitor_step_fn=None)
    watched.set_module(model := nn.Linear(4, 3))
    watched.add_activation_metric("l2_norm", monitor.refined_coordinate_check.l2_norm)
    watched.begin_step(0)
    out = model(torch.randn(8, 4))
    watched.end_step()
    measured = watched.get_step_metrics()["activation/[root module]/l2_norm"]
    assert measured == pytest.approx(float(out.detach().norm(dim=-1).mean()))


# -- fkat -----------------------------------------------------------------------------------------------------

CHECKSUMS = ("params", "buffers", "grads", "rngs", "optimizers", "batch")
STATISTICS = "shape dtype infs nans zeros med mean amean std var uvar skew kurt mode min max hash".split()


def recorded(folder: Path, **options: object) -> Run:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    with Snapshots(folder, **options):  # type: ignore[arg-type]
        for _ in range(16):
            optimizer.zero_grad()
            model(torch.randn(32, 4)).square().mean().backward()
            optimizer.step()
    return Run(folder)


FKAT = rows("frameworks.md", "| Introspection | SnapshotCallback |")


def arguments(ours: str) -> dict[str, object]:
    """The arguments in the right column, as Python reads them."""
    found: dict[str, object] = eval(f"dict({quoted(ours)[0]})")
    return found


@pytest.mark.parametrize("checksum", CHECKSUMS)
def test_each_checksum_of_fkat_has_a_kind_of_record(checksum: str, tmp_path: Path) -> None:
    [ours] = [ours for theirs, ours in FKAT if theirs == f'`checksums={{"{checksum}"}}`']
    options = arguments(ours)
    found = recorded(tmp_path / "run", **options, schedule="first 2").records.to_pylist()
    assert {row["kind"] for row in found} == set(options["of"])  # type: ignore[call-overload]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_each_statistic_of_fkat_can_be_asked_for_by_its_name(statistic: str, tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", of=("parameter",), statistics=(statistic,), schedule="first 1")
    [weight] = [row for row in run.records.to_pylist() if row["name"] == "0.weight"]
    columns = {"infs": ["pos_infs", "neg_infs"], "hash": ["digest"]}.get(statistic, [statistic])
    assert all(weight[column] is not None for column in columns)


@pytest.mark.parametrize(
    ("theirs", "steps"),
    [
        ("Never()", set()),
        ("Always()", set(range(16))),
        ("Every(n_steps=100)", {0}),
        ("Fixed(warmup_steps=10, active_steps=5)", set(range(10, 15))),
    ],
)
def test_each_schedule_of_fkat_has_one_that_takes_these_steps(
    theirs: str, steps: set[int], tmp_path: Path
) -> None:
    [ours] = [ours for row, ours in FKAT if row == f"`schedule={theirs}`"]
    found = recorded(tmp_path / "run", of=("parameter",), **arguments(ours)).records.to_pylist()
    assert {row["step"] for row in found} == steps


def test_the_environment_and_the_packages_are_recorded_and_yaml_is_written(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    of = ("environment", "package", "parameter")
    kinds = {row["kind"] for row in recorded(tmp_path / "run", of=of, schedule="first 1").records.to_pylist()}
    assert kinds == set(of)
    run: Callable[..., object] = recorded
    with pytest.raises(Exception, match="yaml"):  # a folder of YAML is no run
        run(tmp_path / "yaml", of=of, schedule="first 1", form="yaml")
    names = {
        path.relative_to(tmp_path / "yaml/introspection").as_posix()
        for path in (tmp_path / "yaml").rglob("*.yaml")
    }
    assert names == {"env_vars.yaml", "pip_freeze.yaml", "fit/step=0/rank0.yaml"}
