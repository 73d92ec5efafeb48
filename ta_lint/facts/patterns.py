"""Pieces of regular expressions over source text, for what a check needs."""

# What may stand in the parentheses of a call, up to four deep.
_FLAT = r"[^()]"
_ONCE = rf"(?:{_FLAT}|\({_FLAT}*+\))"
_TWICE = rf"(?:{_FLAT}|\({_ONCE}*+\))"
_THRICE = rf"(?:{_FLAT}|\({_TWICE}*+\))"

ARGUMENTS = rf"{_THRICE}*+"
SOME_ARGUMENTS = rf"{_THRICE}*?"
