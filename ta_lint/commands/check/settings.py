"""The settings of a run: `[tool.ta]` in each folder, overridden by the command line."""

import argparse
from pathlib import Path
from typing import NamedTuple

from ta_lint.commands.messages import warn
from ta_lint.core.config import Config, Configs, Options, cache_variable, project_root
from ta_lint.core.errors import UsageError
from ta_lint.core.terms import Severity


class Settings(NamedTuple):
    """The settings of every folder, and the root of the project, which the paths of findings start from."""

    configs: Configs
    root: Path

    @property
    def config(self) -> Config:
        """The settings of the working folder, for what does not depend on a file, such as the baseline."""
        return self.configs.root_config


def working_folder() -> Path:
    """The working folder.

    Raises:
        UsageError: the folder was removed.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the working folder does not exist any more") from error


def read_settings(arguments: argparse.Namespace, folder: Path) -> Settings:
    """The settings of a run in this folder.

    Raises:
        UsageError: the settings are wrong.
    """
    options = Options(
        select=arguments.select,
        extend_select=arguments.extend_select or [],
        ignore=arguments.ignore or [],
        target_torch=arguments.target_torch,
        fail_level=Severity(arguments.fail_level) if arguments.fail_level else None,
        show_notes=arguments.show_notes,
        baseline=arguments.baseline,
        unsafe_fixes=arguments.unsafe_fixes,
        force_exclude=arguments.force_exclude,
        cache_dir=arguments.cache_dir or cache_variable(),
        config=arguments.config,
        isolated=arguments.isolated,
    )
    return Settings(Configs(options, folder), project_root(folder))


def shown(arguments: argparse.Namespace, settings: Settings) -> Config:
    """The settings that hold for the given path, or else for the working folder.

    Raises:
        UsageError: the path does not exist, or there are several.
    """
    if not arguments.paths:
        return settings.config
    path = arguments.paths[0]
    if len(arguments.paths) > 1:
        raise UsageError("--show-settings: give one path, as each folder may have settings of its own")
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    place = path.absolute()
    return settings.configs.of_directory(place if path.is_dir() else place.parent)


def warn_of_overlooked(settings: Settings) -> None:
    """Warn about what looks like settings but is not read."""
    for remark in settings.configs.overlooked:
        warn(remark)
