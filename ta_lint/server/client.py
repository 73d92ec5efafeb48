"""The capabilities of the client."""

from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.workspace import PositionCodec


@dataclass(frozen=True)
class Client:
    """The capabilities that matter to this server, and how the client counts columns."""

    codec: PositionCodec
    pulls: bool
    """It asks for diagnostics, so they must not be sent as well."""
    refreshes: bool
    """It asks for diagnostics again when requested."""
    watches: bool
    """It can watch files for the server."""
    relates: bool
    """It shows related places with a diagnostic."""
    versions: bool
    """It refuses edits for an older version of a text."""
    resolves: bool
    """It asks for the edit of an action only when the user has chosen it."""
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
