"""Laws of the steps of optimizers: what they hold, find and move, and what `zero_grad` leaves."""

from collections.abc import Iterable, Iterator

from ta_runtime.invariants.laws.law import ABSENT, Breach, Evidence, Inside, Law, is_new, is_step
from ta_runtime.invariants.words import quoted
from ta_runtime.trace.event import Event, Flag

_REQUIRES_GRAD, _CHANGED, _UNSEEN, _NONE, _RAISED = map(
    int, (Flag.REQUIRES_GRAD, Flag.CHANGED, Flag.UNSEEN, Flag.NONE, Flag.RAISED)
)
_IN_A_ROW = 2
"""Steps without any gradient that break the law: one is common, as it allocates the state of an optimizer."""


class _OfSteps(Law):
    """Is asked about each step of an optimizer whose states were looked at."""

    wanted = frozenset()
    judges = True

    def judge(self, call: Event, inside: Inside) -> Iterable[Breach]:
        return self.judge_step(call, inside) if is_step(call) else ()

    def judge_step(self, step: Event, inside: Inside) -> Iterator[Breach]:
        raise NotImplementedError


class HeldTrained(_OfSteps):
    """Holds of one that is given the frozen part of a model as well: it holds some of the rest."""

    name = "holds-trained"
    says = "an optimizer that steps holds a parameter that requires a gradient"

    def judge_step(self, step: Event, inside: Inside) -> Iterator[Breach]:
        self.is_tested = True
        if not any(each.flags & _REQUIRES_GRAD for each in inside.gradients.values()):
            evidence: Evidence = {"parameters": len(inside.gradients), "first": next(iter(inside.gradients))}
            yield Breach(step, f"{quoted(step.name)} holds frozen parameters alone", evidence)


class FoundGradient(_OfSteps):
    """Of all optimizers of a step together, as of several tasks one may get no gradients for a while."""

    name = "finds-gradient"
    says = "of two steps in a row one finds a gradient"

    def __init__(self) -> None:
        super().__init__()
        self._found = False
        self._without: Event | None = (
            None  # a call in this step that found none, though it holds what requires one
        )
        self._in_a_row = 0

    def judge_step(self, step: Event, inside: Inside) -> Iterator[Breach]:
        states = inside.gradients.values()
        if not all(each.flags & _NONE for each in states):
            self._found = True
        elif any(each.flags & _REQUIRES_GRAD for each in states):
            self._without = step
        yield from ()

    def step_over(self, step: int) -> Iterator[Breach]:
        call, found = self._without, self._found
        self._without, self._found = None, False
        self.is_tested |= found
        self._in_a_row = self._in_a_row + 1 if call is not None and not found else 0
        if call is not None and self._in_a_row >= _IN_A_ROW:
            self.is_tested = True
            yield Breach(call, f"{quoted(call.name)} finds no gradient", {"steps in a row": self._in_a_row})


class MovedAtLast(_OfSteps):
    """Of an optimizer that has not moved anything so far: one that has may have converged. Those that are not torch's may
    collect gradients first. `value` is the largest learning rate of a step."""

    name = "moves-parameters"
    says = "an optimizer of torch that finds gradients moves a parameter, unless its learning rate is zero"

    def __init__(self) -> None:
        super().__init__()
        self._moved: set[str] = set()  # by its name and whose parameters it holds

    def judge_step(self, step: Event, inside: Inside) -> Iterator[Breach]:
        if not step.name.startswith("torch.optim.") or not step.value:
            return
        first = next(iter(inside.gradients))
        key = f"{step.name} {step.subject} {first}"
        if first in inside.parameters and is_new(inside.parameters[first]):
            self._moved.discard(key)
        trained = [
            state
            for name, state in inside.parameters.items()
            if name in inside.gradients
            and not inside.gradients[name].flags & ABSENT
            and not state.flags & _UNSEEN
        ]
        if trained and key not in self._moved:
            self.is_tested = True
            if any(state.flags & _CHANGED for state in trained):
                self._moved.add(key)
            else:
                evidence: Evidence = {"parameters": len(trained), "learning rate": step.value}
                yield Breach(step, f"{quoted(step.name)} moves no parameter", evidence)


class FrozenRests(_OfSteps):
    """What an optimizer finds of a parameter that was frozen later is an old gradient, unless it was cleared."""

    name = "frozen-rests"
    says = "an optimizer does not move a frozen parameter by an old gradient"

    def __init__(self) -> None:
        super().__init__()
        self._frozen: dict[str, int] = {}  # the step in which a parameter was last seen to be so

    def judge_step(self, step: Event, inside: Inside) -> Iterator[Breach]:
        moved: list[str] = []
        for name, state in inside.parameters.items():
            if state.flags & _REQUIRES_GRAD:
                self._frozen.pop(name, None)
                continue
            gradient = inside.gradients.get(name)
            if gradient is None:
                continue
            was_frozen = self._frozen.get(name) == step.step - 1
            self._frozen[name] = step.step
            self.is_tested |= was_frozen
            if was_frozen and state.flags & _CHANGED and not gradient.flags & ABSENT:
                moved.append(name)
        if moved:
            evidence: Evidence = {"parameters": len(moved), "first": moved[0]}
            yield Breach(step, f"{quoted(step.name)} moves frozen parameters by an old gradient", evidence)


class ClearedGradients(Law):
    """That of an optimizer, and that of a module."""

    name = "clears-gradients"
    says = "`zero_grad` leaves no gradient that is not zero"
    wanted = frozenset()
    judges = True

    def judge(self, call: Event, inside: Inside) -> Iterator[Breach]:
        if call.name.endswith(".zero_grad") and not call.flags & _RAISED:
            self.is_tested = True
            wrong = [name for name, each in inside.gradients.items() if not each.flags & ABSENT]
            if wrong:
                evidence: Evidence = {"gradients": len(wrong), "first": wrong[0]}
                yield Breach(call, f"{quoted(call.name)} leaves gradients in place", evidence)
