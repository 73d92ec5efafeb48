"""Laws of several ranks: what replicas are equal in, and which collectives they call."""

from collections import defaultdict
from collections.abc import Iterable

from ta_runtime.invariants.laws.law import ABSENT, Breach, Inside, Law, steps
from ta_runtime.trace.event import Event

_TOGETHER = 2
"""Contents that two ranks had at the same time, after which they count as replicas: of one they may be constants."""
_MOST = 256
"""Collectives of a step and group that are compared: of more, the first."""
_BETWEEN_TWO = ("send", "recv", "batch_isend_irecv", "object_list")


class ReplicasStayEqual(Law):
    """A weight that was the same while it changed; and one that gets the same gradient, which parts of a model do not."""

    name = "replicas-stay-equal"
    says = "a parameter that was equal on all ranks while it changed, or whose gradients are equal on them, stays equal on them"
    wanted = frozenset({("parameter", "")})
    judges = True

    def __init__(self) -> None:
        super().__init__()
        self._gradients: dict[str, int | None] = {}  # those that optimizers used in this step
        self._weights: dict[str, Event] = {}
        self._equal: dict[str, set[int]] = defaultdict(set)  # contents, by parameter and the two ranks

    def see(self, event: Event) -> Iterable[Breach]:
        if event.digest is not None:
            self._weights[event.subject] = event
        return ()

    def judge(self, call: Event, inside: Inside) -> Iterable[Breach]:
        if steps(call):
            for name, each in inside.gradients.items():
                self._gradients[name] = None if each.flags & ABSENT else each.digest
        return ()

    def told(self) -> dict[str, tuple[object, Event]]:
        weights, gradients = self._weights, self._gradients
        self._weights, self._gradients = {}, {}
        return {name: ((event.digest, gradients.get(name)), event) for name, event in weights.items()}

    def compare(self, key: str, own: object, other: object) -> str | None:
        assert isinstance(own, tuple)
        assert isinstance(other, tuple)
        equal = self._equal[key]
        if own[0] == other[0]:
            self.is_tested = True
            if len(equal) < _TOGETHER:
                equal.add(own[0])
            return None
        if len(equal) >= _TOGETHER or (own[1] is not None and own[1] == other[1]):
            self.is_tested = True
            return "a parameter is not the same on all ranks that have it alike"
        equal.clear()
        return None


class SameCollectives(Law):
    """Of each group in a step, by name and order; messages between two ranks are not collectives."""

    name = "same-collectives"
    says = "all ranks of a group call the same collectives in a step"
    wanted = frozenset({("collective", "")})

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, list[Event]] = defaultdict(list)

    def see(self, event: Event) -> Iterable[Breach]:
        if not event.name.endswith(_BETWEEN_TWO):
            calls = self._calls[event.subject]
            if len(calls) < _MOST:
                calls.append(event)
        return ()

    def told(self) -> dict[str, tuple[object, Event]]:
        calls, self._calls = self._calls, defaultdict(list)
        return {group: (tuple(each.name for each in made), made[-1]) for group, made in calls.items()}

    def compare(self, key: str, own: object, other: object) -> str | None:
        assert isinstance(own, tuple)
        assert isinstance(other, tuple)
        self.is_tested = True
        return "ranks do not call the same collectives" if own != other else None
