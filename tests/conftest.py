"""Fixtures that several test files share."""

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import commands
import pytest
import sarif_validator

# Some virtual machines claim AMX and die of it, in torch itself: before torch is loaded, here and in what tests start.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# The models are tiny: threads of torch would only wait for one another, for a minute where one takes seconds.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell ignores Ctrl-C in what it starts in the background, and processes inherit that: those of tests must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW = """
    against_all_runs growth ecosystem healthy_runs against_frameworks share_of_rules odd processes convert cache silent_bugs inference_programs smoke given_back runtime_examples reading runtime_cli report_page
    silent_errors preflight ranks integrations bad_input snapshot overhead diff frameworks program framework_monitors recorder damaged_runs runs
    sinks watching monitor trace server action safe_fixes runner runtime_reports examples pre_commit distributed_rules masking guards fine_tuning
    fixing_benchmark fixes_benchmark vscode site adding_a_rule compile collector tokenizers from_frameworks large_traces dogfood
    from_torch_audit migrations
""".split()
"""The files about whole programs, processes, frameworks, corpora and browsers, longest first. They take two thirds of the time, and
`-m "not slow"` leaves them out."""

LONGEST = [*SLOW, "runtime_rules", "rules", "verdicts", "fuzz"]
"""These begin first, so that no worker waits for another at the end."""


SHOWN = 25


def _is_slow(path: Path) -> bool:
    return path.stem.removeprefix("test_") in SLOW


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file is slow or it is not: to import all in order to leave out most takes half a minute in each worker."""
    wanted = {"slow": True, "not slow": False}.get(config.option.markexpr)
    is_tests = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if wanted is not None and is_tests and _is_slow(collection_path) is not wanted else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begins = {f"test_{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: begins.get(item.path.name, len(begins)))
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which files take how long, so that one sees where a share would do."""
    taken = Counter[str]()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        taken[getattr(report, "nodeid", "").partition("::")[0]] += getattr(report, "duration", 0)
    if len(taken) > SHOWN:
        terminalreporter.section(f"slowest {SHOWN} files")
        for name, seconds in taken.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f}s {name}")


@pytest.fixture(autouse=True)
def _nothing_compiled() -> Iterator[None]:
    """A process that has used `torch.compile` is watched in another way: no test hands that on to the next."""
    yield
    if any(getattr(sys.modules.get("torch._dynamo.eval_frame"), "cached_backends", {}).values()):
        sys.modules["torch._dynamo"].reset()


def pytest_collection_finish() -> None:
    """Nothing that the tests import is garbage, and to look through it again takes a quarter of a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that runs in this process would hide from the collector what earlier tests left behind."""
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.fixture(autouse=True)
def _the_path_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process look for modules where they are called, as their own process would."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def validate_sarif(tmp_path: Path) -> Callable[[str], list[str]]:
    """What Microsoft's validator says about the text of a SARIF log; see `sarif_validator.validate`."""
    return lambda sarif: sarif_validator.validate(sarif, tmp_path)


@pytest.fixture(autouse=True)
def _state_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run that is recorded keeps the key of its masks with the user's state: not with the tester's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs of two ranks each that `planted/ranks.py` records."""
    folder = tmp_path_factory.mktemp("ranks")
    script = Path(__file__).parent / "planted" / "ranks.py"
    ran = commands.warm(folder, str(script), str(folder), timeout=240)
    assert ran.returncode == 0, ran.stderr
    return folder
