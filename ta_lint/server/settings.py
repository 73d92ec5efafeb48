"""The settings of a file, read again when a file that they come from has changed."""

from dataclasses import dataclass
from pathlib import Path

from ta_lint.core import baseline
from ta_lint.core.config import Config, Configs, Options, project_root
from ta_lint.core.files import Stamp, stamp
from ta_lint.core.settings import FILES
from ta_lint.discovery import named
from ta_lint.file import File

_Stamps = tuple[Stamp, ...]


@dataclass(frozen=True)
class FileSettings:
    """The settings and the baseline of a file. `file` is None if it is excluded."""

    file: File | None
    accepted: list[baseline.Entry]
    """The entries of its baseline."""


class SettingsReader:
    """The settings of each file, cached until a settings file above it or the baseline changes."""

    def __init__(self) -> None:
        self._configs: dict[Path, tuple[_Stamps, Configs]] = {}
        self._baselines: dict[Path, tuple[_Stamps, list[baseline.Entry]]] = {}

    def read(self, path: Path, data: bytes) -> FileSettings:
        """The settings of a file with this path and content, which need not be on disk.

        Raises:
            UsageError: the settings are wrong.
        """
        root = project_root(path.parent)
        files = named(path, data, self._configs_at(path.parent, root), root)
        if not files:
            return FileSettings(None, [])
        return FileSettings(files[0], self._baseline(files[0].config))

    def _configs_at(self, folder: Path, root: Path) -> Configs:
        stamps = tuple(stamp(above / name) for above in (folder, *folder.parents) for name in FILES)
        known = self._configs.get(folder)
        if known is None or known[0] != stamps:
            self._configs[folder] = known = (stamps, Configs(Options(force_exclude=True), root))
        return known[1]

    def _baseline(self, config: Config) -> list[baseline.Entry]:
        if config.baseline is None:
            return []
        stamps = (stamp(config.baseline),)
        known = self._baselines.get(config.baseline)
        if known is None or known[0] != stamps:
            self._baselines[config.baseline] = known = (stamps, baseline.load(config.baseline))
        return known[1]
