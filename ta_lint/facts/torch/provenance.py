"""Values that certainly come from outside: downloads, web requests, and user input."""

import re
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.torch.hub import Hub
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, Tree, argument, dotted, is_name, spreads

_DEPTH = 12

# Functions that download and return the content, or the path of the file.
_DOWNLOADS = regex(
    r"huggingface_hub\.(\w+\.)*(hf_hub_download|cached_download|snapshot_download)|"
    r"transformers(\.\w+)*\.(cached_file|cached_path)|"
    r"urllib\.request\.(urlretrieve|urlopen)|urllib\.(urlretrieve|urlopen)|"
    r"(requests|httpx)\.(get|post|request)|wget\.download|gdown\.(cached_)?download|pooch\.retrieve|"
    r"kagglehub\.(model|dataset)_download|torch\.hub\.load_state_dict_from_url|"
    r"torch\.utils\.model_zoo\.load_url"
)

# Functions that download to a file: the argument that names it, by keyword and position.
_DESTINATIONS = {
    "gdown.cached_download": ("path", 1),
    "gdown.download": ("output", 1),
    "torch.hub.download_url_to_file": ("dst", 1),
    "urllib.request.urlretrieve": ("filename", 1),
    "urllib.urlretrieve": ("filename", 1),
    "wget.download": ("out", 1),
}

# Arguments by which a download is verified against a digest.
_DIGESTS = ("hash_prefix", "known_hash", "hash", "check_hash")

_TYPED = regex(
    r"builtins\.(raw_)?input|streamlit\.(sidebar\.)?(file_uploader|text_input)|getpass\.getpass|click\.prompt"
)

_REQUEST = regex(
    r"flask\.request\.(args|files|form|json|values|data|stream|get_json|get_data|headers|cookies)\b.*"
)

# Calls whose result is, names or contains their argument.
_CARRIES = regex(
    r"builtins\.(open|str|bytes|bytearray)|io\.(BytesIO|BufferedReader|open)|gzip\.open|os\.fspath|"
    r"os\.path\.(join|abspath|expanduser|expandvars|normpath|realpath)|pathlib\.\w*Path"
)
_CARRYING_METHODS = frozenset(
    "body decode expanduser get getbuffer getvalue joinpath open read read_bytes resolve strip "
    "with_suffix".split()
)
_CARRYING_ATTRIBUTES = frozenset("content file filename name path raw stream".split())

_SERVERS = regex(r"flask\.(Flask|Blueprint)|fastapi\.(FastAPI|APIRouter)|quart\.(Quart|Blueprint)")
_ROUTES = frozenset("route get post put patch websocket".split())

# Code that compares a digest has verified the content.
_VERIFIES = regex(r"hashlib\..*")
_VERIFYING_NAME = regex(
    r"(check|verify|validate)_?\w*(hash|sha|md5|sum|integrity|signature)|(sha\d+|md5)(sum)?", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Foreign:
    """Input from outside: the node where it enters, and its description in a message."""

    node: Node
    what: str


class Provenance:
    """Traces values to their origin: through names bound once, paths, open files and responses."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, hub: Hub) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._hub = hub

    def foreign(self, node: Node) -> Foreign | None:
        """Where a value, or the file that it names, comes from outside; None if it does not, or is uncertain.

        Also None if the download is pinned, or the enclosing function compares a digest.
        """
        found = self._traced(node, _DEPTH)
        return found if found is not None and not self._is_verified(node) else None

    def _traced(self, node: Node, depth: int) -> Foreign | None:
        if depth == 0:
            return None
        if (written := self._written(node)) is not None:
            return written
        node = self._kinds.origin(node)
        if isinstance(node, cst.Call):
            return self._of_call(node, depth)
        if isinstance(node, cst.Param):
            return self._of_param(node, depth)
        return self._of_input(node) or self._first(self._parts(node), depth)

    def _of_input(self, node: Node) -> Foreign | None:
        """Request data or command-line arguments, recognised by name."""
        if not isinstance(node, (cst.Attribute, cst.Subscript)):
            return None
        held = self._names.qualified(node.value if isinstance(node, cst.Subscript) else node) or ""
        if _REQUEST.fullmatch(held):
            return Foreign(node, "data from a client")
        if isinstance(node, cst.Subscript) and held == "sys.argv":
            return Foreign(node, "a file that the command line names")
        return None

    def _parts(self, node: Node) -> list[Node]:
        """The expressions that a value is built from."""
        if isinstance(node, cst.Name):
            return self._unpacked(node)
        if isinstance(node, cst.Subscript):
            return [node.value]
        if isinstance(node, cst.Attribute):
            return [node.value] if node.attr.value in _CARRYING_ATTRIBUTES else []
        if isinstance(node, cst.BinaryOperation):
            return [node.left, node.right]
        if isinstance(node, cst.FormattedString):
            held_in = (part for part in node.parts if isinstance(part, cst.FormattedStringExpression))
            return [part.expression for part in held_in]
        return [node.expression] if isinstance(node, cst.Await) else []

    def _unpacked(self, name: cst.Name) -> list[Node]:
        """The call that `path` comes from in `path, headers = urlretrieve(url)`."""
        binding = self._names.definition(name)
        called = binding is not None and binding.how == "unpack" and isinstance(binding.value, cst.Call)
        return [binding.value] if binding is not None and binding.value is not None and called else []

    def _first(self, parts: list[Node], depth: int) -> Foreign | None:
        found = (self._traced(part, depth - 1) for part in parts)
        return next((foreign for foreign in found if foreign is not None), None)

    def _of_call(self, call: cst.Call, depth: int) -> Foreign | None:
        called = self._names.qualified(call.func) or ""
        if _DOWNLOADS.fullmatch(called):
            return self._downloaded(call)
        if _TYPED.fullmatch(called):
            return Foreign(call, f"a file that `{called.rpartition('.')[2]}` asks for")
        if _REQUEST.fullmatch(called):
            return Foreign(call, "data from a client")
        if _CARRIES.fullmatch(called):
            return self._first([arg.value for arg in call.args if arg.keyword is None], depth)
        if (returned := self._kinds.calls.returned(call)) is not None:
            return self._traced(returned, depth - 1)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _CARRYING_METHODS:
            return self._traced(call.func.value, depth - 1)
        return None

    def _downloaded(self, call: cst.Call) -> Foreign | None:
        what = f"data from `{dotted(call.func)}`"
        return Foreign(call, what) if not self._is_pinned(call) else None

    def _of_param(self, param: cst.Param, depth: int) -> Foreign | None:
        function = self._tree.parent[self._tree.parent[param]]
        if not isinstance(function, cst.FunctionDef):
            return None
        depends = isinstance(param.default, cst.Call) and (
            self._names.qualified(param.default.func) or ""
        ).endswith(".Depends")
        if self._handles_requests(function) and not depends:
            return Foreign(param, "data from a client")
        given = self._kinds.calls.given(param) or []
        return self._traced(given[0], depth - 1) if len(given) == 1 else None

    def _handles_requests(self, function: cst.FunctionDef) -> bool:
        for decorator in function.decorators:
            call = decorator.decorator
            if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
                continue
            made = self._kinds.construction(call.func.value)
            server = self._names.qualified(made.func) if made is not None else None
            if call.func.attr.value in _ROUTES and server is not None and _SERVERS.fullmatch(server):
                return True
        return False

    def _written(self, node: Node) -> Foreign | None:
        """An earlier download in the same function to the file that an expression names."""
        home, code = self._tree.home(node), plain(node)
        for call, destination in self._downloads_to_files:
            same = plain(destination) == code and self._tree.home(call) is home
            if same and self._tree.before(call, node) and not self._tree.contains(call, node):
                return self._downloaded(call)
        return None

    @cached_property
    def _downloads_to_files(self) -> list[tuple[cst.Call, Node]]:
        found: list[tuple[cst.Call, Node]] = []
        for call in self._tree.all(cst.Call):
            place = _DESTINATIONS.get(self._names.qualified(call.func) or "")
            if place is not None and (destination := argument(call, *place)) is not None:
                found.append((call, destination))
        return found

    def _is_verified(self, node: Node) -> bool:
        """Whether the enclosing function computes or compares a digest."""
        for call in self._tree.own(self._tree.home(node), cst.Call):
            called = self._names.qualified(call.func) or ""
            name = (dotted(call.func) or "").rpartition(".")[2]
            if _VERIFIES.fullmatch(called) or _VERIFYING_NAME.fullmatch(name):
                return True
        return False

    def _is_pinned(self, call: cst.Call) -> bool:
        """Whether a download specifies the content that it accepts, or may do so."""
        if spreads(call) or self._hub.is_pinned(call, "revision", "commit_hash"):
            return True
        given = (argument(call, keyword) for keyword in _DIGESTS)
        return any(
            value is not None and not is_name(value, "None") and self._kinds.boolean(value) is not False
            for value in given
        )
