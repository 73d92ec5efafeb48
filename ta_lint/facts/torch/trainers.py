"""What a program gives to a Trainer of transformers, or to one of TRL or of its own that derives from it."""

from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Value
from ta_lint.syntax.tree import Node, Tree

TRAINER = "transformers.Trainer"

_SETTINGS = regex(r"transformers\.(\w+\.)*\w*TrainingArguments|trl\.(\w+\.)*\w+Config")
_PLAIN = regex(r"transformers\.(\w+\.)*(Seq2Seq)?Trainer")
_PLACED = regex(r"transformers\.(\w+\.)*(Seq2Seq)?Trainer|trl\.(\w+\.)*(SFT|Reward)Trainer")
_PLACES = ("model", "args", "data_collator", "train_dataset", "eval_dataset")
_NOTHING = Value()


class Trainers:
    """Queries about trainers that this file makes."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._flow = flow

    @cached_property
    def made(self) -> list[cst.Call]:
        """The calls that make a trainer, in source order."""
        return [call for call in self._tree.all(cst.Call) if self._kinds.instance(call.func) is Kind.TRAINER]

    @cached_property
    def settings(self) -> list[cst.Call]:
        """The calls that make the settings of a trainer, in source order."""
        return [call for call in self._tree.all(cst.Call) if self._are_settings(call)]

    def _are_settings(self, call: cst.Call) -> bool:
        return _SETTINGS.fullmatch(self._names.qualified(call.func) or "") is not None

    @cached_property
    def losses(self) -> list[tuple[cst.ClassDef, cst.FunctionDef]]:
        """The classes of trainers that compute the loss by a method of their own, with it, but not the whole step."""
        found = []
        for klass in self._classes.all():
            methods = self._classes.methods(klass)
            method = methods.get("compute_loss")
            if (
                method is not None
                and "training_step" not in methods
                and self._classes.derives(klass, TRAINER)
            ):
                found.append((klass, method))
        return found

    def is_plain(self, trainer: cst.Call) -> bool:
        """Whether a trainer takes and does what that of transformers does, as far as its class does not say otherwise."""
        klass = self._classes.local(trainer.func)
        if klass is None:
            return _PLAIN.fullmatch(self._names.qualified(trainer.func) or "") is not None
        return all(
            _PLAIN.fullmatch(base)
            for base in self._outer_bases(klass, set())
            if base.rpartition(".")[2].endswith("Trainer")
        )

    def _outer_bases(self, klass: cst.ClassDef, seen: set[cst.ClassDef]) -> list[str]:
        """The classes outside of the project that a class derives from, as far as their names are known."""
        seen.add(klass)
        found: list[str] = []
        for base in self._classes.bases(klass):
            if isinstance(base, str):
                found.append(base)
            elif base is not None and base not in seen:
                found += self._outer_bases(base, seen)
        return found

    def defines(self, trainer: cst.Call, *methods: str) -> bool:
        """Whether the class of a trainer has one of these methods of its own."""
        klass = self._classes.local(trainer.func)
        return klass is not None and any(self._own(klass, name, set()) for name in methods)

    def _own(self, klass: cst.ClassDef, method: str, seen: set[cst.ClassDef]) -> bool:
        seen.add(klass)
        bases = (base for base in self._classes.bases(klass) if isinstance(base, cst.ClassDef))
        return method in self._classes.methods(klass) or any(
            self._own(base, method, seen) for base in bases if base not in seen
        )

    def given(self, trainer: cst.Call, keyword: str) -> Value:
        """What a trainer is given by a keyword, or at its place; no origins if it certainly is given nothing."""
        place = -1
        if keyword in _PLACES and self._keeps_places(trainer):
            place = _PLACES.index(keyword)
        return self._flow.argument(trainer, keyword, place)

    def collators(self, trainer: cst.Call) -> list[cst.FunctionDef | cst.Lambda]:
        """The functions of the project that make the batches of a trainer: a function, a lambda, or the `__call__` of an object."""
        given = self.given(trainer, "data_collator").origins
        found = (self._collator(one.node) for one in given if not one.path)
        return [function for function in found if function is not None]

    def _collator(self, given: Node) -> cst.FunctionDef | cst.Lambda | None:
        if isinstance(given, (cst.Lambda, cst.FunctionDef)):
            return given
        klass = self._kinds.class_of(given)
        return (
            self._classes.method(klass, "__call__")
            if klass is not None
            else self._kinds.calls.function(given)
        )

    def _keeps_places(self, trainer: cst.Call) -> bool:
        """Whether a trainer takes its arguments in the order of that of transformers, by a constructor of its own or not."""
        klass = self._classes.local(trainer.func)
        if klass is None:
            return _PLACED.fullmatch(self._names.qualified(trainer.func) or "") is not None
        if not self.is_plain(trainer):
            return False
        init = self._classes.methods(klass).get("__init__")
        if init is None:
            return not self.defines(trainer, "__init__")
        return isinstance(init.params.star_arg, cst.Param) and len(init.params.params) == 1

    def settings_of(self, trainer: cst.Call) -> cst.Call | None:
        """The call that makes the settings of a trainer; None if it is not in sight, or is one of several."""
        given = self.given(trainer, "args")
        made = [self._kinds.construction(origin.node) for origin in given.origins if not origin.path]
        settings = [call for call in made if call is not None and self._are_settings(call)]
        return settings[0] if len(settings) == len(given.origins) == 1 else None

    def option(self, trainer: cst.Call, name: str) -> Value | None:
        """What the settings of a trainer say by a name; no origins if they certainly say nothing, None if they are not in sight."""
        if not self.given(trainer, "args").origins:
            return _NOTHING
        settings = self.settings_of(trainer)
        return self._flow.argument(settings, name, -1) if settings is not None else None

    def boolean(self, trainer: cst.Call, name: str, default: bool) -> bool | None:
        """A setting of a trainer that is on or off; None if that is not in sight."""
        value = self.option(trainer, name)
        if value is None:
            return None
        if not value.origins:
            return default
        known = {self._kinds.boolean(origin.node) if not origin.path else None for origin in value.origins}
        return known.pop() if len(known) == 1 else None
