"""One call, as a function of a library gets it."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Known, Object, Place, Unknown, Value
from ta_lint.events.event import Event

O = TypeVar("O", bound=Object)


class Misfit(Exception):
    """A method gets something else than an object of its class."""


@dataclass(slots=True)
class Call:
    """The arguments of a call, and the machine that runs it."""

    machine: Machine
    node: ast.AST
    args: list[Value]
    kwargs: dict[str, Value] = field(default_factory=dict)
    loose: bool = False
    """Whether there may be more arguments, as `*args` and `**kwargs` were not known."""
    function: str = ""
    """The full name of the function that is called, whatever the program calls it."""

    @property
    def name(self) -> str:
        """The last part of that, such as `softmax`."""
        return self.function.rpartition(".")[2]

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.machine.place(self.node)

    @overload
    def own(self) -> Object: ...
    @overload
    def own(self, kind: type[O]) -> O: ...
    def own(self, kind: type[Any] = Object) -> Any:
        """The object whose method is called.

        Raises:
            Misfit: it is none of this kind.
        """
        found = self.args[0] if self.args else None
        if not isinstance(found, kind):
            raise Misfit
        return found

    def given(self, index: int, name: str) -> Value | None:
        """An argument by its position or name, None if it is not there."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[index] if index < len(self.args) else None

    def argument(self, index: int, name: str, default: Any = None) -> Value:
        """The same; a missing one has its default value, or is unknown if the call may have more than is known."""
        found = self.given(index, name)
        if found is not None:
            return found
        return Unknown(f"the argument {name}") if self.loose else Known(default)

    def constant(self, index: int, name: str, default: Any = None) -> Any:
        """The constant that an argument is, or `...` if it is not known."""
        value = self.argument(index, name, default)
        return value.value if isinstance(value, Known) else ...

    def values(self) -> Iterator[Value]:
        """All arguments."""
        yield from self.args
        yield from self.kwargs.values()

    def emit(self, action: str, subject: Value | None = None, **detail: Any) -> Event:
        """Something happens by this call."""
        return self.machine.emit(action, self.node, subject, **detail)


Effect = Callable[[Call], Value]
"""What a call of a library's function does."""
