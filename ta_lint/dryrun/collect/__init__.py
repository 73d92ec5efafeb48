"""The facts of a dry run: what its events say, in the terms in which a real run is described.

One module fills the facts of one module in `ta_lint.events`; `run` has all of them.
"""
