"""The language server: what the linter finds, in the editor, while its file is being written.

`documents` is what the client holds, `linting` what is found in it, and `diagnostics`, `actions` and `hover` say that in
the terms of the protocol, with `positions` counted as the `client` counts. `app` takes the messages.
"""
