"""What the client said it can do."""

from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.workspace import PositionCodec


@dataclass(frozen=True)
class Client:
    """The client's abilities that matter here, and how it counts columns."""

    codec: PositionCodec
    pulls: bool
    """It asks for diagnostics; they are not to be sent to it as well."""
    refreshes: bool
    """It asks again when told to."""
    watches: bool
    """It can be asked to watch files."""
    relates: bool
    """It shows other places with a diagnostic."""
    versions: bool
    """It refuses an edit of a text that it has changed since."""
    resolves: bool
    """It asks for the edit of an action when the user has chosen it."""
    markdown: bool


def client_of(capabilities: types.ClientCapabilities, codec: PositionCodec) -> Client:
    """The client with these capabilities."""

    def has(name: str, default: Any = False) -> Any:
        return get_capability(capabilities, name, default)

    pulls = has("text_document.diagnostic", None) is not None
    related = "diagnostic" if pulls else "publish_diagnostics"
    formats = has("text_document.hover.content_format", None)
    return Client(
        codec=codec,
        pulls=pulls,
        refreshes=bool(has("workspace.diagnostics.refresh_support")),
        watches=bool(has("workspace.did_change_watched_files.dynamic_registration")),
        relates=bool(has(f"text_document.{related}.related_information")),
        versions=bool(has("workspace.workspace_edit.document_changes")),
        resolves="edit" in (has("text_document.code_action.resolve_support.properties", ()) or ()),
        markdown=formats is None or types.MarkupKind.Markdown in formats,
    )
