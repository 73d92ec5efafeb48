"""Runs made by hand, call by call, as a tracer would tell them: what is inside a call comes before it."""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from traces import written

from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.file import says
from ta_runtime.invariants.inferring import infer
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.runs import Run
from ta_runtime.trace.event import Event, Flag

NET, STEP, ZERO_GRAD = "__main__.Net", "torch.optim.AdamW.step", "torch.optim.AdamW.zero_grad"
BACKWARD, LOADER = "torch.Tensor.backward", "torch.utils.data.DataLoader"
TRAIN, EVAL = "torch.nn.Module.train", "torch.nn.Module.eval"


class Story:
    """The events of one rank. `phase`, `step` and `flags` are those of what is told next."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.phase, self.step, self.flags = "train", 0, Flag.WHOLE | Flag.GRAD
        self._now = 0
        self._open: list[int] = []

    @contextmanager
    def inside(self, kind: str, name: str, subject: str = "", *, flags: int = 0) -> Iterator[None]:
        """What happens in the block happens inside a call."""
        seq, parent = self._now, self._open[-1] if self._open else -1
        self._now += 1
        self._open.append(seq)
        yield
        self._open.pop()
        said = (self.phase, seq, self._now, parent, kind, name, subject)
        self._now += 1
        nothing = ("", "", "", "", None, None)
        self.events.append(Event(self.step, *said, *nothing, int(self.flags | flags), "train.py", 1))

    def call(self, kind: str, name: str, subject: str = "", *, flags: int = 0) -> None:
        with self.inside(kind, name, subject, flags=flags):
            pass

    # -- what training programs do ------------------------------------------------------------------------------

    def zero_grad(self, *gradients: int) -> None:
        with self.inside("loop", ZERO_GRAD):
            for number, flags in enumerate(gradients):
                self.call("gradient", "torch.nn.Linear", f"layer{number}.weight", flags=flags)

    def forward(self, *ops: str) -> None:
        with self.inside("module", NET), self.inside("module", "torch.nn.Linear", "layer"):
            pass
        for name in ops:
            self.call("op", name)

    def backward(self) -> None:
        self.call("backward", BACKWARD)

    def optimizer_step(self, *parameters: int) -> None:
        """Of each parameter its flags; with those of a gradient it has one."""
        with self.inside("loop", STEP):
            for number, flags in enumerate(parameters):
                absent = flags & (Flag.NONE | Flag.ZERO)
                self.call("gradient", "torch.nn.Linear", f"layer{number}.weight", flags=absent)
                self.call("parameter", "torch.nn.Linear", f"layer{number}.weight", flags=flags & ~absent)
        self.step += 1

    def batch(self, loader: str = "0") -> None:
        self.call("batch", LOADER, loader)

    def epoch(self, loader: str = "0") -> None:
        self.call("epoch", LOADER, loader)

    def iteration(self) -> None:
        self.batch()
        self.zero_grad()
        self.forward()
        self.backward()
        self.optimizer_step()


def trace(folder: Path, *stories: Story) -> Path:
    """The folder of a run, of a story for each rank."""
    return written(folder, {rank: story.events for rank, story in enumerate(stories)})


def learned(
    folder: Path, *stories: Story, templates: Sequence[str] | None = None, support: float = 0.8
) -> list[Invariant]:
    """What always holds in these runs, each a trace of its own."""
    traces = [Run(trace(folder / f"{number}", story)) for number, story in enumerate(stories)]
    return infer(traces, templates=templates, support=support, threads=1)


def sentences(invariants: Iterable[Invariant]) -> set[str]:
    return {says(each) for each in invariants}


def broken(invariants: Iterable[Invariant], story: Story) -> list[str]:
    """What a run breaks, in words, in order."""
    checker = Checker(invariants, lambda text: (_ for _ in ()).throw(AssertionError(text)))
    found, step = [], 0
    for event in story.events:
        if event.step > step:
            found += checker.step_over(step)
            step = event.step
        found += checker.see([event])
    return [violation.message for violation in [*found, *checker.over()]]


def wild(seed: int) -> Story:
    """A program that nobody would write: its calls come by chance, in chains, in phases, in each other."""
    draw = random.Random(seed)
    story = Story()
    kinds = ["loop", "loop", "loop", "module", "backward", "collective", "checkpoint"]
    names = [
        (kind, f"pkg.Thing{number}.{draw.choice(['step', 'train', 'run'])}")
        for number, kind in enumerate(kinds)
    ]
    chains = [draw.choices(range(len(names)), k=draw.randint(1, 5)) for _ in range(3)]
    for _ in range(60):
        story.phase = draw.choice(["setup", "train", "train", "eval"])
        story.flags = (
            Flag.GRAD
            | (Flag.WHOLE if draw.random() < 0.8 else 0)
            | (Flag.AUTOCAST if draw.random() < 0.3 else 0)
        )
        if draw.random() < 0.2:
            story.epoch(draw.choice("01"))
        if draw.random() < 0.7:
            story.batch()
        for number in draw.choice(chains):
            kind, name = names[number]
            if kind == "module" and not story.flags & Flag.WHOLE:
                continue
            with story.inside(kind, name):
                while draw.random() < 0.4:
                    inner = draw.choice(names)
                    if inner[0] != "module" or story.flags & Flag.WHOLE:
                        story.call(*inner, "part" if inner[0] == "module" else "")
                if story.flags & Flag.WHOLE and kind == "loop":
                    for part in range(2):
                        story.call(
                            "gradient", "L", f"{part}.w", flags=draw.choice([0, 0, Flag.NONE, Flag.ZERO])
                        )
                        changed = draw.choice([0, Flag.CHANGED, Flag.CHANGED, Flag.CHANGED, Flag.UNSEEN])
                        story.call(
                            "parameter",
                            "L",
                            f"{part}.w",
                            flags=changed | draw.choice([0, Flag.REQUIRES_GRAD]),
                        )
                        story.call("buffer", "B", f"{part}.mean", flags=draw.choice([Flag.CHANGED] * 6 + [0]))
        if draw.random() < 0.8:
            story.step += 1
    return story
