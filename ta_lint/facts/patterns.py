"""Pieces of regular expressions over source text, for what a check needs."""

# What may stand in the parentheses of a call, up to four deep.
_FLAT = r"[^()]"
_ONCE = rf"(?:{_FLAT}|\({_FLAT}*+\))"
_TWICE = rf"(?:{_FLAT}|\({_ONCE}*+\))"
_THRICE = rf"(?:{_FLAT}|\({_TWICE}*+\))"

ARGUMENTS = rf"{_THRICE}*+"
SOME_ARGUMENTS = rf"{_THRICE}*?"

# `.load` of something that is not known to be another library, or an import of `load`, to be called by a
# name of its own.
_OTHERS = ("json", "pickle", "yaml", "np", "numpy", "jit", "joblib", "toml", "OmegaConf")
_CALL = r"\.load\b" + "".join(rf"(?<!{name}\.load)" for name in _OTHERS)
_IMPORT = (r"import\b[^\n]*\bload\b", r"\n[ \t]*load\s*(?:,|\bas\b|\))")

# What a file holds that may unpickle what torch saved.
UNPICKLES = (
    r"\b(?:load|weights_only)\b",
    (r"\bweights_only\b", _CALL, *_IMPORT),
)

# What a file holds that takes something from outside.
FROM_OUTSIDE = (
    r"_download|\.download|urlretrieve|urlopen|download_url_to_file|requests|httpx|pooch|_from_url|"
    r"load_url|input\(|argv|"
    r"cached_file|cached_path|file_uploader|text_input|flask|fastapi|quart|click"
)

# What a file holds whose scores or probabilities may go into a loss that takes their logarithms.
GIVES_NO_LOGARITHMS = (
    r"\b(?:softmax|sigmoid|expit|relu|tanh|linear|Softmax|Softmax2d|Sigmoid|ReLU|Tanh|Linear|Conv[123]d)\b"
)
