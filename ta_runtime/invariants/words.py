"""How invariants and what breaks them are put into words."""

from collections.abc import Mapping

_SAID = {
    "phase": {
        "setup": "before the first forward pass",
        "train": "while it trains",
        "eval": "while it evaluates",
    },
    "rank": {"first": "on rank 0", "other": "on ranks other than 0"},
    "autocast": {"yes": "under autocast", "no": "outside autocast"},
    "requires_grad": {"yes": "where it requires a gradient", "no": "where it requires no gradient"},
}


def under(where: Mapping[str, str]) -> str:
    """`, while it trains, on rank 0`, to end a sentence with; empty where there is no condition."""
    return "".join(
        f", {_SAID.get(name, {}).get(value) or f'in {quoted(value)}'}" for name, value in where.items()
    )


def quoted(name: str) -> str:
    """What people call it: `AdamW.step` of `torch.optim.AdamW.step`, `linear` of `torch.nn.functional.linear`."""
    *path, last = name.split(".")
    return f"`{path[-1]}.{last}`" if path and path[-1][:1].isupper() else f"`{last}`"
