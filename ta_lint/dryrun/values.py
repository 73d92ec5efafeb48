"""What a value is while a program runs dry: known, out of sight, one of several, or an object with an identity.

Values never change, but for what an `Object` holds, and that is written through `State` alone, so that a branch can be taken back.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeGuard

from ta_lint.dryrun.inheritance import linear

MOST_OPTIONS = 4
"""Of more objects than these, a value is no longer known."""


class Value:
    """Anything that an expression can give."""

    __slots__ = ()


class Unknown(Value):
    """A value of which nothing is known but perhaps its type. Two unknown values are equal only if they are one."""

    __slots__ = ("amount", "cuts", "got", "of", "parts", "shape", "source", "type", "why")

    def __init__(
        self, why: str = "", type: str | None = None, of: "Value | None" = None, cuts: tuple[Any, ...] = (),
        got: tuple[Value, ...] = (), amount: Any = None, source: Any = None, shape: Any = None,
    ) -> None:  # fmt: skip
        self.why = why
        self.type = type
        self.of = of
        """The object whose method it may be."""
        self.cuts = cuts
        """Of numbers: where the graphs of the tensors ended that they were computed from."""
        self.got = got
        """What the code out of sight got that gave it; of a sum or product, what it was computed from."""
        self.amount = amount
        """Of numbers: what they are made of, batch by batch: a `machine.amounts.Amount`, if that is known."""
        self.source = source
        """Where it comes from: see `sources`."""
        self.shape = shape  # see `machine.sizes`
        self.parts: dict[Any, Unknown] = {}
        """Its attributes and items that were asked for: each is the same until it is written."""

    def __repr__(self) -> str:
        return f"Unknown({self.why!r})"


ENDS: Final = "the program ends"
"""Why an exception is not known that ends the program as it means to, as `sys.exit()` does."""
DIFFERS: Final = "it differs"
"""Why a number is not known that is one constant on one path, and another on another."""

DATA: Final = "data"
"""The type of an unknown value that comes from a file, from the command line or from numpy: numbers, text, and what holds them. No tensor of
torch, no module and no optimizer is in it, and what is taken from it is data too."""
MOST_CUTS = 8


def latest(cuts: Iterable[Any]) -> tuple[Any, ...]:
    """Each of these cuts once; of too many, those with the most others before them."""
    every = tuple(dict.fromkeys(cuts))
    kept = set(sorted(every, key=lambda one: -one.after)[:MOST_CUTS]) if len(every) > MOST_CUTS else every
    return tuple(one for one in every if one in kept)


def each_in(values: Iterable[Value]) -> Iterator[Value]:
    """What values may be or hold, also in lists of lists: what a list has is here once, however many ways lead to it, or if it is in itself."""
    seen: set[int] = set()
    within = [iter(values)]
    while within:
        for one in within[-1]:
            if not isinstance(one, (Choice, Sequence, Table)):
                yield one
            elif id(one) not in seen:
                seen.add(id(one))
                within.append(iter(one.options if isinstance(one, Choice) else one.every))
                break
        else:
            within.pop()


def cuts_of(*values: Value) -> tuple[Any, ...]:
    """Where the graphs of the tensors ended that these numbers, or those in lists, were computed from."""
    if all(one.__class__ is Known or (one.__class__ is Unknown and not one.cuts) for one in values):
        return ()  # as nearly always
    return latest(cut for one in each_in(values) if isinstance(one, Unknown) for cut in one.cuts)


def is_data(value: Value) -> bool:
    """Whether it is certainly neither tensor, module nor optimizer, nor holds one. None is not: it may be the place of one."""
    return (isinstance(value, Known) and value.value is not None) or (
        isinstance(value, Unknown) and value.type is not None
    )


class Known(Value):
    """A constant: a number, a string, None, a slice of constants."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        is_same_type = isinstance(other, Known) and type(other.value) is type(self.value)
        return is_same_type and other.value == self.value  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __repr__(self) -> str:
        return f"Known({self.value!r})"


def is_number(value: Value) -> TypeGuard[Known]:
    """Whether it is a number that is known, True or False."""
    return isinstance(value, Known) and isinstance(value.value, (int, float))


class Setting(Known):
    """The default of an argument that nobody passes: who calls the function may pass another."""

    __slots__ = ()

    @property
    def is_open(self) -> bool:
        """Whether it turns something off, or does it once, as False, -1, 0, 1 and an empty text do: who needs more passes another."""
        return self.value in (-1, 0, 1, "")


class Option(Setting):
    """The default of an option of the command line, which a script has that is started without more words."""

    __slots__ = ()


NONE: Final = Known(None)
TRUE: Final = Known(True)
FALSE: Final = Known(False)


class External(Value):
    """A name of a library that no stub describes, such as `wandb.log`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class OnDemand(Value):
    """A name that is imported where it is first used: `name` of the module at `path`, which is `module` by name."""

    __slots__ = ("module", "name", "path")

    def __init__(self, path: str, module: str, name: str) -> None:
        self.path = path
        self.module = module
        self.name = name

    def __repr__(self) -> str:
        return f"OnDemand({self.module!r}, {self.name!r})"


class Choice(Value):
    """One of a few values: objects, or constants."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Value, ...]) -> None:
        self.options = options


class Native(Value):
    """A function of Python or of a library, written here: what a call of it does, which `run` gets as a `machine.call.Call`."""

    __slots__ = ("name", "run")

    def __init__(self, name: str, run: Callable[[Any], Value]) -> None:
        self.name = name
        self.run = run


class Object(Value):
    """Something with an identity: an instance of a class, and what its attributes hold."""

    __slots__ = ("cls", "fields", "made")

    def __init__(
        self, cls: "Class", made: "Place | None" = None, fields: dict[Any, Any] | None = None
    ) -> None:
        self.cls = cls
        self.made = made
        self.fields: dict[Any, Any] = {} if fields is None else fields

    def alike(self) -> Any:
        """What makes it the same as another in all but its identity; None if that matters."""
        return None

    def copied(self) -> "Value":
        """Another one with what it holds, if that matters."""
        return self

    def __repr__(self) -> str:
        return f"<{self.cls.name}>"


class Module(Object):
    """A module of the program. `fields` are the names at its top."""

    __slots__ = ()


class Class(Object):
    """A class, of the program or of a library. `fields` are its attributes."""

    __slots__ = ("bases", "is_whole", "mro", "name", "node", "out_of_sight")

    def __init__(
        self, name: str, bases: "tuple[Class, ...]" = (), fields: dict[Any, Value] | None = None,
        node: ast.ClassDef | None = None, made: "Place | None" = None,
    ) -> None:  # fmt: skip
        super().__init__(self, made, fields)
        self.name = name
        self.bases = bases
        self.node = node
        self.mro: tuple[Class, ...] = (self, *linear(bases, [base.mro for base in bases]))
        self.out_of_sight: bool = name.startswith("?") or any(base.out_of_sight for base in bases)
        """Whether it derives from a class that nobody has described."""
        self.is_whole = node is not None
        """Whether its instances have no other attributes than those that are known."""

    def find(self, name: str, after: "Class | None" = None) -> Value | None:
        """The attribute that an instance has of its class; with `after`, what `super()` of that class finds."""
        mro = (
            self.mro if after is None else self.mro[self.mro.index(after) + 1 :] if after in self.mro else ()
        )
        return next((cls.fields[name] for cls in mro if name in cls.fields), None)

    def is_a(self, other: "Class") -> bool:
        """Whether it is this class or derives from it."""
        return other in self.mro

    def __repr__(self) -> str:
        return f"<class {self.name}>"


class Function(Object):
    """A function of the program, with the frame that it was defined in."""

    __slots__ = ("after", "defaults", "frame", "node", "owner", "within")

    def __init__(
        self,
        cls: Class,
        node: "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda",
        frame: Any,
        made: "Place",
    ) -> None:
        super().__init__(cls, made)
        self.node = node
        self.frame = frame
        self.owner: Class | None = None
        self.defaults: Mapping[str, Value] = {}
        self.within: tuple[Object, ...] = ()
        """The context managers that decorate it, such as `torch.no_grad()`."""
        self.after: Callable[[Any], None] | None = None
        """What a library does after each call of it, which this gets as a `machine.call.Call`."""

    @property
    def name(self) -> str:
        """As it is defined."""
        return getattr(self.node, "name", "lambda")

    def __repr__(self) -> str:
        return f"<function {self.name}>"


class Bound(Value):
    """A method with its object."""

    __slots__ = ("function", "receiver")

    def __init__(self, receiver: Value, function: Value) -> None:
        self.receiver = receiver
        self.function = function

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Bound) and other.receiver is self.receiver and other.function is self.function
        )

    def __hash__(self) -> int:
        return hash((id(self.receiver), id(self.function)))


class Hidden:
    """A key of what is known of an object, among its attributes, that no program sees."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}>"


BY_NAME = Hidden("that its name alone says what it is")


class Mergeable:
    """What a store holds that is no value, and knows what is known of it where it is one of two."""

    __slots__ = ()

    def either(self, other: Any) -> Any:
        """What both have in common."""
        raise NotImplementedError

    def is_settled(self, before: Any) -> bool:
        """Whether a pass that began with `before` and leaves this is like the next one, which begins with this; else that runs as well.
        None is before it where the pass has made the object.
        """
        return True

    def renewed(self, machine: Any, since: int, made: dict[Any, Any]) -> Any:
        """The same for another call of a function that has begun at a moment, with new parts for those that it has `made` since then."""
        return self


@dataclass(frozen=True, slots=True)
class Items(Mergeable):
    """What a sequence holds: known values, in order, and then any number of `rest`, if it is not None."""

    known: tuple[Value, ...]
    rest: Value | None = None

    def either(self, other: "Items") -> "Items":
        """What both begin with; anything else may come after it."""
        shared = min(len(self.known), len(other.known))
        beyond = [
            *self.known[shared:],
            *other.known[shared:],
            *(one.rest for one in (self, other) if one.rest is not None),
        ]
        return Items(
            tuple(map(join, self.known[:shared], other.known[:shared])), joined(beyond) if beyond else None
        )


ITEMS: Final = Hidden("the items of a sequence")


class Sequence(Object):
    """A list, tuple or set."""

    __slots__ = ()

    def __init__(
        self, cls: Class, items: tuple[Value, ...], rest: Value | None = None, made: "Place | None" = None
    ) -> None:
        super().__init__(cls, made, {ITEMS: Items(items, rest)})

    @property
    def items(self) -> tuple[Value, ...]:
        """Those that are known, in order."""
        return self.fields[ITEMS].known  # type: ignore[no-any-return]

    @property
    def rest(self) -> Value | None:
        """What any further item is."""
        return self.fields[ITEMS].rest  # type: ignore[no-any-return]

    @property
    def every(self) -> tuple[Value, ...]:
        """What an item may be: the known ones, and `rest`."""
        return self.items if self.rest is None else (*self.items, self.rest)

    def __repr__(self) -> str:
        return f"<{self.cls.name} of {len(self.items)}{'+' if self.rest is not None else ''}>"


REST: Final = object()
"""The key of a `Table` for the values of keys that are not known."""


class Table(Object):
    """A dictionary. `fields` are its values by the constants that are their keys, and under `REST` those of other keys."""

    __slots__ = ()

    def entries(self) -> Iterator[tuple[Any, Value]]:
        """The known keys with their values."""
        return (
            (key, value)
            for key, value in self.fields.items()
            if key is not REST and not isinstance(key, Hidden)
        )

    @property
    def rest(self) -> Value | None:
        """What the value of any other key is; None if there are no other keys."""
        return self.fields.get(REST)

    @property
    def every(self) -> tuple[Value, ...]:
        """What a value in it may be."""
        return tuple(value for key, value in self.fields.items() if not isinstance(key, Hidden))


@dataclass(frozen=True, slots=True)
class Place:
    """Where code stands: the file, and the node of Python's tree."""

    file: str
    node: ast.AST

    @property
    def line(self) -> int:
        """The line it begins in, from 1."""
        return getattr(self.node, "lineno", 0)


def options(value: Value) -> tuple[Value, ...]:
    """The values that it may be: itself, unless it is a choice."""
    return value.options if isinstance(value, Choice) else (value,)


def join(one: Value, other: Value) -> Value:
    """What is known of a value that is one of two."""
    if one is other or one == other:
        return one
    for value, another in ((one, other), (other, one)):
        if isinstance(value, Unknown):
            return _unknown(value, another)
    if is_number(one) and is_number(other):
        return Unknown(DIFFERS, type(one.value).__name__ if type(one.value) is type(other.value) else "float")
    several = _fewer(dict.fromkeys((*options(one), *options(other))))
    if len(several) == 1:
        return several[0]
    return Choice(several) if len(several) <= MOST_OPTIONS else Unknown("it may be too many things")


def _unknown(one: Unknown, other: Value) -> Value:
    """What is known of a value that is this unknown one, or another."""
    if other == NONE:
        return one
    kind = type(other.value).__name__ if isinstance(other, Known) else getattr(other, "type", None)
    cuts, amount = cuts_of(one, other), _amount_of(one, other)
    source, shape = one.source or getattr(other, "source", None), getattr(other, "shape", None)
    facts = cuts, amount, one.shape if one.shape == shape else None
    is_same_type = one.type in (None, kind)
    if is_same_type and facts == (one.cuts, one.amount, one.shape) and source is one.source:
        return one
    type_, of = (one.type, one.of) if is_same_type else (None if kind is None else DATA, None)
    return Unknown(one.why, type_, of, cuts, amount=amount, source=source, shape=facts[-1])


def _amount_of(one: Unknown, other: Value) -> Any:
    """What a number is made of that is this one, or another."""
    if one.amount is None or (isinstance(other, Known) and not one.amount.is_total):
        return one.amount
    return one.amount.either(getattr(other, "amount", None))


def joined(values: "tuple[Value, ...] | list[Value]") -> Value:
    """What is known of a value that is one of these."""
    return reduce(join, values) if values else Unknown("nothing is there")


def _merged(one: Value, other: Value) -> Value | None:
    """The two as one value, where their identity does not matter: tensors of one step, and tuples of one length."""
    merge: Callable[[Any], Value | None] | None = getattr(one, "merged", None)
    if merge is not None:
        return merge(other)
    if not (isinstance(one, Sequence) and isinstance(other, Sequence)) or len(one.items) != len(other.items):
        return None
    if any(each.cls.name != "tuple" or each.rest is not None for each in (one, other)):
        return None
    return Sequence(one.cls, tuple(map(join, one.items, other.items)), None, one.made)


def _fewer(several: Iterable[Value]) -> tuple[Value, ...]:
    """The same, with one value for those that need not be told apart."""
    found: list[Value] = []
    for value in several:
        both = ((at, known) for at, one in enumerate(found) if (known := _merged(one, value)) is not None)
        at, known = next(both, (len(found), value))
        found[at : at + 1] = [known]
    return tuple(found)
