"""Tokenizers of transformers: where they are made, and which token they pad with."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.options import usual
from ta_lint.syntax.tree import Node, Tree, argument, dotted, literal_text

_TOKENIZER = regex(r"transformers\.(\w+\.)*\w*Tokenizer(Fast)?(\.from_pretrained)?")
# Families of models whose tokenizers pad with nothing, by the names of their repositories.
_WITHOUT_PADDING = regex(
    r"(.*/)?((distil)?gpt2|gpt-(neo|j)|pythia|(meta-)?llama-?[123]|codellama|mistral|mixtral|falcon|phi-[12])[\w.-]*"
)
# Those whose tokenizers pad on the right where nobody tells them otherwise.
_ON_THE_RIGHT = regex(
    r"(.*/)?((distil)?gpt2|gpt-(neo|j)|pythia|opt|(meta-)?llama-?[123]|codellama|tinyllama|phi-[12]|qwen[\d.]*)[\w.-]*"
)
_PADS = ("pad_token", "pad_token_id")
_ENDS = ("eos_token", "eos_token_id")
_DEPTH = 6


@dataclass(frozen=True, eq=False)
class Padding:
    """A place that says which token a tokenizer pads with: its end token or another one, in any case or where it has none."""

    node: Node
    tokenizer: Node
    is_end: bool
    guarded: bool


class Tokenizers:
    """Queries about tokenizers."""

    def __init__(
        self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow, calls_in_loop: CallsInLoop
    ) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow
        self._calls_in_loop = calls_in_loop
        self._paddings: dict[cst.Module, list[Padding]] = {}

    def makers(self, tokenizer: Node, depth: int = _DEPTH) -> list[cst.Call]:
        """The calls that certainly made what an expression stands for; empty if one of them is unknown."""
        node = self._kinds.origin(tokenizer)
        if isinstance(node, cst.Call) and (called := self._names.qualified(node.func)) is not None:
            return [node] if _TOKENIZER.fullmatch(called) else []
        if depth == 0:
            return []
        if isinstance(node, cst.Param):
            values = self._calls_in_loop.values(node)
        else:
            origins = self._flow.of(node).origins
            values = [origin.node for origin in origins if not origin.path]
            values = values if len(values) == len(origins) else []
        found = [self.makers(value, depth - 1) if value is not node else [] for value in values]
        return [call for calls in found for call in calls] if all(found) else []

    def pads_with_end(self, tokenizer: Node) -> bool:
        """Whether a tokenizer certainly pads with the token that ends a text."""
        made = self.makers(tokenizer)
        return bool(made) and all(self._is_padded_with_end(call) for call in made)

    def _is_padded_with_end(self, made: cst.Call) -> bool:
        pad, end = argument(made, "pad_token"), argument(made, "eos_token")
        if pad is not None:
            given = self._kinds.string(pad)
            return given is not None and end is not None and given == self._kinds.string(end)
        roots = dict.fromkeys((self._tree.root_of(made), self._tree.root))
        found = [
            padding
            for root in roots
            for padding in self._paddings_in(root)
            if made in self.makers(padding.tokenizer)
        ]
        return bool(found) and all(
            padding.is_end and (not padding.guarded or self._is_of(made, _WITHOUT_PADDING))
            for padding in found
        )

    # -- on which side it pads ---------------------------------------------------------------------------------

    def pads_on_the_right(self, tokenizer: Node) -> bool:
        """Whether a tokenizer certainly pads at the end of rows: it is told so, or nothing tells and its family does."""
        made = self.makers(tokenizer)
        return bool(made) and all(self._is_padded_right(call) for call in made)

    def _is_padded_right(self, made: cst.Call) -> bool:
        given = argument(made, "padding_side")
        sides = [given] if given is not None else []
        for root in dict.fromkeys((self._tree.root_of(made), self._tree.root)):
            for assign in self._tree.within(root, cst.Assign):
                target = assign.targets[0].target
                if isinstance(target, cst.Attribute) and target.attr.value == "padding_side":
                    sides.append(assign.value)
        if not sides and self._names.beside("padding_side") != []:
            return False
        return all(self._kinds.string(side) == "right" for side in sides) and (
            bool(sides) or self._is_of(made, _ON_THE_RIGHT)
        )

    def _is_of(self, made: cst.Call, families: re.Pattern[str]) -> bool:
        """Whether the name by which a tokenizer is loaded is of some families."""
        name = argument(made, "pretrained_model_name_or_path", 0)
        return name is not None and self.is_named(name, families)

    def is_named(self, name: Node, families: re.Pattern[str]) -> bool:
        """Whether an expression is a name of some families, on all ways; as an option of a command line, by its default."""
        values = [usual(origin, self._tree) for origin in self._flow.of(name).origins]
        texts = [self._kinds.string(value) if value is not None else None for value in values]
        return bool(texts) and all(
            text is not None and families.fullmatch(text.lower()) is not None for text in texts
        )

    # -- where padding is set ---------------------------------------------------------------------------------

    def _paddings_in(self, root: cst.Module) -> list[Padding]:
        if root not in self._paddings:
            self._paddings[root] = list(self._find(root))
        return self._paddings[root]

    def _find(self, root: cst.Module) -> Iterator[Padding]:
        for assign in self._tree.within(root, cst.Assign):
            target = assign.targets[0].target
            if isinstance(target, cst.Attribute) and target.attr.value in _PADS:
                yield self._padding(assign, target.value, assign.value)
        for call in self._tree.within(root, cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_special_tokens":
                for token in _pads_of(call):
                    yield self._padding(call, call.func.value, token)

    def _padding(self, node: Node, tokenizer: Node, token: Node) -> Padding:
        token = self._kinds.origin(token) if isinstance(token, cst.Name) else token
        is_end = (
            isinstance(token, cst.Attribute)
            and token.attr.value in _ENDS
            and dotted(token.value) == dotted(tokenizer)
        )
        return Padding(node, tokenizer, is_end, self._tree.enclosing(node, cst.If) is not None)

    # -- labels that are masked where padding stands ----------------------------------------------------------

    def masked_in(self, root: cst.Module) -> list[tuple[Node, Node]]:
        """The places of a file that make every padding token a label that is ignored, each with the tokenizer."""
        found = ((place, self._padding_of(number)) for place, number in self.masks_in(root))
        return [(place, tokenizer) for place, tokenizer in found if tokenizer is not None]

    def masks_in(self, root: cst.Module) -> Iterator[tuple[Node, Node]]:
        """The places of a file that make a token a label that is ignored, each with what it is compared with: `ids == pad`."""
        for comparison in self._tree.within(root, cst.Comparison):
            target = comparison.comparisons[0]
            is_one = len(comparison.comparisons) == 1 and isinstance(
                target.operator, (cst.Equal, cst.NotEqual)
            )
            if is_one and (place := self._masks(comparison)) is not None:
                yield place, target.comparator

    def _padding_of(self, number: Node) -> Node | None:
        """The tokenizer of `tokenizer.pad_token_id`."""
        side = self._kinds.origin(number)
        if isinstance(side, cst.Attribute) and side.attr.value == "pad_token_id":
            return side.value
        origins = self._flow.of(number).origins
        made = {origin.node for origin in origins}
        is_padding = any(origin.path == ("pad_token_id",) for origin in origins)
        return made.pop() if is_padding and len(made) == 1 else None

    def _masks(self, comparison: cst.Comparison) -> Node | None:
        """The statement or call that puts -100 where a comparison holds."""
        for above in self._tree.ancestors(comparison):
            if isinstance(above, cst.IfExp):
                holds = isinstance(comparison.comparisons[0].operator, cst.Equal)
                put = above.body if holds else above.orelse
                return above if above.test is comparison and self._ignores(put) else None
            if isinstance(above, cst.Call):
                return above if self._ignores(_put_by(above)) else None
            if isinstance(above, cst.AssignTarget):
                assign = self._tree.parent[above]
                is_index = isinstance(above.target, cst.Subscript) and len(above.target.slice) == 1
                return assign if is_index and self._ignores(getattr(assign, "value", None)) else None
            if not isinstance(above, (cst.Subscript, cst.SubscriptElement, cst.Index, cst.Arg)):
                return None
        return None

    def _ignores(self, put: Node | None) -> bool:
        return put is not None and self._kinds.number(put) == -100


def _pads_of(call: cst.Call) -> list[Node]:
    """The padding tokens in `add_special_tokens({"pad_token": token})`."""
    given = call.args[0].value if call.args else None
    elements = given.elements if isinstance(given, cst.Dict) else ()
    return [
        item.value
        for item in elements
        if isinstance(item, cst.DictElement) and literal_text(item.key) == "pad_token"
    ]


def _put_by(call: cst.Call) -> Node | None:
    """What `masked_fill(mask, value)` and `where(mask, value, other)` put where the mask holds."""
    called = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if called not in ("masked_fill", "masked_fill_", "where"):
        return None
    return argument(call, "value", 1)
