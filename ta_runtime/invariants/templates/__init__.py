"""What an invariant can say: one module for each template, found by its file name; `template` says what it holds."""

import pkgutil

NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))
"""Of all templates."""
