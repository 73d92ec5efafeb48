"""`--show-settings`: the effective settings, as TOML to copy."""

import json

from ta_lint.core.catalogue import catalogue
from ta_lint.core.config import Config
from ta_lint.core.files import encodable


def as_toml(config: Config) -> str:
    """The settings as a `[tool.ta]` table."""
    with_fix = [rule.id for rule in catalogue().values() if rule.fix != "none" and rule.id in config.rules]
    settings: dict[str, object] = {
        "select": sorted(config.rules),
        "exclude": list(config.exclude),
        "respect-gitignore": config.respect_gitignore,
        "force-exclude": config.force_exclude,
        "fail-level": config.fail_level.value,
        "show-notes": config.show_notes,
        "tests": config.tests.value,
        "fixable": [rule for rule in with_fix if rule in config.fixable],
        "unfixable": [rule for rule in with_fix if rule not in config.fixable],
        "unsafe-fixes": config.unsafe_fixes,
        "extend-safe-fixes": sorted(config.declared_safe),
        "extend-unsafe-fixes": sorted(config.declared_unsafe),
    }
    if config.target_torch is not None:
        settings["target-torch"] = ".".join(map(str, config.target_torch))
    if config.baseline is not None:
        settings["baseline"] = str(config.baseline)
    if config.cache_dir is not None:
        settings["cache-dir"] = str(config.cache_dir)
    unset = [key for key in ("target-torch", "baseline", "cache-dir") if key not in settings]
    lines = [f"# {config.source}", "[tool.ta]"]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
    lines += [f"# {key} is not set" for key in unset]
    lines += ["", "[tool.ta.per-file-ignores]"] * bool(config.per_file_ignores)
    lines += [
        f"{json.dumps(pattern, ensure_ascii=False)} = {json.dumps(rules)}"
        for pattern, rules in config.per_file_ignores
    ]
    return encodable("\n".join(lines) + "\n")
