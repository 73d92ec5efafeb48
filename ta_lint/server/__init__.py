"""The language server, which shows findings in the editor while the user types.

`documents` holds the open texts and `linting` their findings; `diagnostics`, `actions` and `hover` turn those into objects
of the protocol, with `positions` in the units of the `client`. `app` handles the messages.
"""
