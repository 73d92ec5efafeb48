"""What is the user's goes on as if nobody watched: threads, interruptions, the exit status, memory, and the cost of a step."""

import gc
import random
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from ta_runtime import faults
from ta_runtime.audit.session import Session
from ta_runtime.faults import Shield, keep, passes
from ta_runtime.probes import threads
from ta_runtime.probes.patching import original
from ta_runtime.settings import resolve


@contextmanager
def session(**options: Any) -> Iterator[Session]:
    watching = Session(resolve(**{"every_n_steps": 1} | options))
    watching.start()
    try:
        yield watching
    finally:
        watching.stop()


def rules(watching: Session) -> list[str]:
    return [incident.rule for incident in watching.incidents]


class Training:
    """A tiny model with its optimizer."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.randn(4, 6)).pow(2).mean().backward()
        self.optimizer.step()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()


def run(script: str, folder: Path, *options: str, watched: bool = True) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(script)
    command = ["-m", "ta_runtime", "run", *options] if watched else []
    return subprocess.run(
        [sys.executable, *command, str(path)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        check=False,
    )


# -- threads ------------------------------------------------------------------------------------------------------


def in_thread(function: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(function).result(timeout=120)


def test_nobody_who_listens_is_told_of_another_thread() -> None:
    """D3: four threads that train their own models ended the process, as one read the gradients of the others."""
    with session() as watching:
        own = Training()
        own.steps(2)
        told: list[object] = []
        tried = watching.barrier.tried

        def noted(method: Callable[..., Any], *args: Any, **given: Any) -> Any:
            told.append(method)
            return tried(method, *args, **given)

        watching.barrier.tried = noted  # type: ignore[method-assign]
        in_thread(lambda: Training().steps(3))
        assert told == []
        own.step()
        assert told
        assert watching.hidden == {"optimizer steps in other threads than the first": 3}
    assert rules(watching) == []


def test_threads_that_train_at_once_leave_one_another_alone() -> None:
    """D3."""
    with session() as watching:
        with ThreadPoolExecutor(4) as pool:
            for each in [pool.submit(lambda: Training().steps(40)) for _ in range(4)]:
                each.result(timeout=240)
        assert watching.step_count % 40 == 0
    assert rules(watching) == []


def test_an_optimizer_that_another_thread_steps_is_not_looked_at() -> None:
    """D3: built by the thread that trains, and handed over."""
    with session() as watching:
        own, theirs = Training(), Training()
        own.steps(2)
        in_thread(lambda: theirs.steps(2))
        looked: list[object] = []
        stepping = next(one for one in watching.observers if type(one).__name__ == "Stepping")
        own.step()
        looked = [state.optimizer() for state in stepping._near]  # type: ignore[attr-defined]
        assert looked == [own.optimizer]
    assert rules(watching) == []


def test_a_thread_that_alone_trains_is_the_one_that_is_watched() -> None:
    with session() as watching:
        in_thread(lambda: Training().steps(3))
        assert watching.step_count == 3


def test_a_thread_that_has_ended_is_followed_by_the_next_that_steps() -> None:
    with session() as watching:
        training = Training()
        for _ in range(2):
            thread = threading.Thread(target=lambda: training.steps(2))
            thread.start()
            thread.join(timeout=120)
        assert watching.step_count == 4


def test_nothing_is_watched_once_two_threads_step_the_same_parameters() -> None:
    with session() as watching:
        training = Training()
        training.step()
        other = torch.optim.SGD(training.model.parameters(), lr=0.01)
        in_thread(other.step)
        training.steps(2)
        assert watching.step_count == 1
        assert "anything once two threads stepped the same parameters" in watching.hidden
    assert threads.is_watched()


# -- modes and subclasses of the user's ---------------------------------------------------------------------------


def seen_by_modes(*, watched: bool) -> list[str]:
    """What a dispatch mode and a function mode are told of a training, and a subclass of the operators on its tensors."""
    seen: list[str] = []

    class Dispatched(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Called(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(resolve_name(function)))
            return function(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(resolve_name(function)))
            return super().__torch_function__(function, types, args, kwargs or {})  # type: ignore[no-untyped-call]

    with session() if watched else nullcontext():
        training = Training()
        training.step()
        with Dispatched(), Called():  # type: ignore[no-untyped-call]
            training.steps(3)
        own: Any = torch.ones(2).as_subclass(Own)
        own *= 2
        own += own * 3
        (own.sqrt() ** 2).softmax(0)
    return seen


def test_modes_and_subclasses_of_the_user_see_none_of_our_calls() -> None:
    """D16."""
    assert seen_by_modes(watched=True) == seen_by_modes(watched=False)


def told_to_tracers(*, watched: bool) -> list[object]:
    """What `sys.setprofile` and `sys.settrace` tell of this file and of the functions that it calls, and who gets it."""
    told: list[object] = []

    def profiler(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_filename == __file__:
            told.append((event, frame.f_code.co_name, frame.f_lineno, getattr(argument, "__name__", None)))

    class Tracer:
        def __call__(self, frame: FrameType, event: str, argument: object) -> object:
            told.append((event, frame.f_code.co_name, frame.f_lineno))
            return self if frame.f_code.co_filename == __file__ else None

    tracer: Any = Tracer()

    def train() -> None:
        for _ in range(3):
            training.step()
            (torch.exp(torch.ones(3)) * 2).sqrt()

    training = Training()
    with session() if watched else nullcontext():
        train()
        sys.setprofile(profiler)
        train()
        told.append(sys.getprofile() is profiler)
        sys.setprofile(None)
    before = len(told)
    sys.settrace(tracer)
    with session() if watched else nullcontext():
        del told[before:]
        told.append(sys.gettrace() is tracer)
        training.optimizer.zero_grad()
        after = len(told)
    del told[after:]
    told.append(sys.gettrace() is tracer)
    sys.settrace(None)
    return told


def test_trace_and_profile_functions_of_the_user_are_told_nothing_of_ours() -> None:
    """D16."""
    assert told_to_tracers(watched=True) == told_to_tracers(watched=False)


# -- what interrupts ----------------------------------------------------------------------------------------------


class Timeout(Exception):
    """Of the user."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends a signal")
@pytest.mark.parametrize("kind", [Timeout, TimeoutError, ValueError])
@pytest.mark.parametrize("every_n_steps", [0, 1])
def test_a_timeout_at_any_moment_ends_what_it_is_to_end(kind: type[Exception], every_n_steps: int) -> None:
    """D4: 7 of 60 were taken for a fault of ours, and a loop that waited for one never ended."""
    choose = random.Random(0)
    is_raised = False

    def over(number: int, frame: FrameType | None) -> None:
        nonlocal is_raised
        is_raised = True
        raise kind("over")

    before = signal.signal(signal.SIGALRM, over)
    lost = 0
    try:
        with session(every_n_steps=every_n_steps) as watching:
            training = Training()
            training.steps(4)
            for _ in range(40):
                is_raised = False
                torch.set_grad_enabled(True)  # a `no_grad` of torch's that is interrupted may leave it off
                try:
                    signal.setitimer(signal.ITIMER_REAL, choose.uniform(0.001, 0.02))
                    while not is_raised:
                        training.step()
                    lost += 1
                except kind:
                    pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        torch.set_grad_enabled(True)
    assert lost == 0
    assert "TA000" not in rules(watching)


def test_what_ours_raises_stays_inside_and_what_a_signal_handler_raises_passes() -> None:
    """D4."""

    def ours() -> None:
        raise ValueError("ours")

    with Shield():
        ours()

    def handler(*given: Any) -> None:
        raise ValueError("of the user")

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(ValueError, match="of the user"), Shield():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_exception_that_another_thread_sends_passes() -> None:
    """D4: by `PyThreadState_SetAsyncExc`, as libraries of timeouts do."""
    import ctypes

    def send() -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(own), ctypes.py_object(Timeout))

    own = threading.get_ident()

    def wait() -> None:
        threading.Thread(target=send).start()
        while True:
            pass

    with pytest.raises(Timeout), Shield():
        wait()


def test_every_guard_lets_pass_what_comes_from_outside() -> None:
    """D4: an `except Exception` asks `faults.keep` first, where code of ours runs beside the user's."""
    root = Path(faults.__file__).parent
    apart = {
        "cli.py",
        "faults.py",
        "startup/__init__.py",
        "commands",
        "preflight/forking.py",
        "monitor/sinks",
    }
    found = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if any(name == each or name.startswith(f"{each}/") for each in apart):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            guards = line.strip().startswith("except Exception")
            asks = any(each.strip() == "keep(error)" for each in lines[number + 1 : number + 3])
            if (guards and not asks) or "suppress(Exception" in line:
                found.append(f"{name}:{number + 1}")
    assert found == []
    assert callable(keep)
    assert not passes(ValueError())


# -- the exit status and the output -------------------------------------------------------------------------------

_TRAINS = """\
import torch
from torch import nn
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).pow(2).sum().backward()
    optimizer.step()
"""

_ENDS = {
    "open is broken": "import builtins\ndef broken(*a, **k): raise RuntimeError\nbuiltins.open = broken\nprint('end')\n",
    "there is no open": "import builtins\ndel builtins.open\nprint('end')\n",
    "no descriptor is left": "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\nheld = []\ntry:\n"
    "    while True: held.append(os.open('/dev/null', 0))\nexcept OSError: pass\nprint('end')\n",
    "there is no standard error": "import sys\nsys.stderr = None\nprint('end')\n",
    "standard error is closed": "import sys\nsys.stderr.close()\nprint('end')\n",
    "the disk of standard error is full": "import sys\nsys.stderr = open('/dev/full', 'w', buffering=1)\nprint('end')\n",
    "the stack is nearly full": "import sys\nsys.setrecursionlimit(60)\nprint('end')\n",
    "it exits with 7": "import sys\nprint('end')\nsys.exit(7)\n",
    "it exits with a text and there is no standard error": "import sys\nsys.stderr = None\nsys.exit('no')\n",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and limits")
@pytest.mark.parametrize("ends", _ENDS)
def test_the_exit_status_and_the_output_are_those_of_the_script(ends: str, tmp_path: Path) -> None:
    """D13, D16: it was 2 where the report could not be made, and the report stood in the output without standard error."""
    plain = run(_TRAINS + _ENDS[ends], tmp_path, watched=False)
    watched = run(_TRAINS + _ENDS[ends], tmp_path)
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits")
def test_a_report_that_cannot_be_written_is_said_so_and_leaves_the_exit_status(tmp_path: Path) -> None:
    """D13: it was 2, and the last line said where the report was."""
    script = f"{_TRAINS}import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 40))\n"
    watched = run(script, tmp_path, "--output", "report.json", "--record", "run")
    assert watched.returncode == 0
    assert "cannot write" in watched.stderr
    assert "cannot record the run in run" in watched.stderr
    assert "The report is in" not in watched.stderr
    assert run(script, tmp_path, "--output", "report.json", "--fail-level", "error").returncode == 2


def test_code_of_the_run_that_raises_when_it_is_asked_is_no_fault_of_ours() -> None:
    """D13."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)

        def named_parameters(self, *args: Any, **options: Any) -> Any:
            raise RuntimeError("named")

        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(x)

    with session() as watching:
        model = Net()
        optimizer = torch.optim.SGD(model.layer.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
        assert watching.step_count == 5
    assert "TA000" not in rules(watching)
    assert any("code of the run raised `RuntimeError`" in what for what in watching.hidden)


def test_a_model_that_does_not_tell_its_parameters_is_recorded_all_the_same(tmp_path: Path) -> None:
    """D13: the recording ended, with the exit status 2."""
    own = "class Net(nn.Linear):\n    def named_parameters(self, *a, **k): raise RuntimeError('named')\n"
    script = _TRAINS.replace("model = nn.Linear(8, 3)", f"{own}model = Net(8, 3)")
    script = script.replace("model.parameters()", "[model.weight, model.bias]")
    ran = run(script, tmp_path, "--every", "1", "--record", "rec", "--snapshots", "first 3")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "no more" not in ran.stderr
    assert "not complete" not in ran.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_looked_at_without_a_fault(layout: torch.layout) -> None:
    """D13."""
    with session() as watching:
        model = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            batch = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(3, 8)], layout=layout)
            optimizer.zero_grad()
            sum(part.pow(2).sum() for part in model(batch).unbind()).backward()
            optimizer.step()
    assert rules(watching) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of this kind")
def test_a_script_that_is_interrupted_ends_by_the_signal(tmp_path: Path) -> None:
    """D16: with 130, which a shell cannot tell from a script that exits so."""
    script = f"{_TRAINS}import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    plain, watched = (run(script, tmp_path, watched=each) for each in (False, True))
    enabled = run(f"import ta_runtime\nta_runtime.enable()\n{script}", tmp_path, watched=False)
    assert plain.returncode == watched.returncode == enabled.returncode == -signal.SIGINT
    assert watched.stderr.count("KeyboardInterrupt") == enabled.stderr.count("KeyboardInterrupt") == 1


def test_no_frame_of_ours_stands_in_the_traceback_of_the_script(tmp_path: Path) -> None:
    """D16."""
    script = f"{_TRAINS}model(torch.randn(4, 8)).detach().sum().backward()\n"
    plain, watched = (run(script, tmp_path, watched=each).stderr for each in (False, True))
    assert "Traceback" in plain
    assert watched.startswith(plain)


# -- what is kept alive -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"every_n_steps": 1}, {"every_n_steps": 100}, {"every_n_steps": 0}])
def test_nothing_of_the_run_is_kept_between_two_steps(options: dict[str, Any]) -> None:
    """D12: the last model and optimizer stayed until the next step, or to the end."""
    with session(**{"every_n_steps": None} | options):
        training = Training()
        training.steps(8)
        known = [weakref.ref(each) for each in (training.model, training.optimizer, training.model[0].weight)]
        del training
        gc.collect()
        assert [reference() for reference in known] == [None] * 3


# -- many optimizers ----------------------------------------------------------------------------------------------


def calls(count: int, **options: Any) -> float:
    """How many calls a step of an optimizer takes among so many, in the second round of them."""
    found = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    with session(**options):
        trainings = [Training() for _ in range(count)]
        for _ in range(2):
            found = 0
            original(sys.setprofile)(note)  # it sees our frames too
            for each in trainings:
                each.step()
            sys.setprofile(None)
    return found / count


@pytest.mark.parametrize("options", [{"every_n_steps": 0}, {"every_n_steps": 1}])
def test_a_step_costs_the_same_among_many_optimizers(options: dict[str, Any]) -> None:
    """D11: with 400, each backward pass looked at all, and each step of them went through all parameters."""
    few, many = (calls(count, **options) for count in (8, 128))
    assert many < 1.3 * few
