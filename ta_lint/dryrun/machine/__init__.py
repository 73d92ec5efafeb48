"""How Python runs, on values that are known only in part."""
