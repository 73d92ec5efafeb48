"""`ta-lint clean`: removes the caches of a project."""

import argparse
from pathlib import Path

from ta_lint.commands import CLEAN
from ta_lint.core.arguments import Parser, path


def add_arguments(parser: Parser) -> None:
    parser.works_alone = True
    parser.usage = "ta-lint clean [options] [PATH]"
    parser.description = "Removes the caches of the project and of all folders below PATH, and nothing else."
    parser.epilog = "exit status: 0, or 2 if a cache could not be removed"
    parser.add_argument("path", nargs="?", type=path, default=".", metavar="PATH", help="(default: .)")
    parser.add_argument("--cache-dir", type=path, metavar="DIR", help="remove the cache in this folder too")
    parser.add_argument("--quiet", "-q", action="store_true", help="do not say what was removed")


def run(arguments: argparse.Namespace) -> int:
    """Remove the caches in and below a folder, that of its project, and named ones; return the exit status."""
    from ta_lint.cache import FOLDER, caches, remove
    from ta_lint.core.config import Configs, Options, cache_variable, project_root
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import display
    from ta_lint.core.terminal import harmless

    top: Path = arguments.path.absolute()
    if not top.is_dir():
        raise UsageError(f"{arguments.path}: no such folder")
    if arguments.cache_dir is not None and not arguments.cache_dir.is_dir():
        raise UsageError(f"--cache-dir: {arguments.cache_dir} is not a folder")
    named = Configs(Options(cache_dir=arguments.cache_dir or cache_variable()), top).root_config.cache_dir
    usual = project_root(top) / FOLDER
    folders = [*([] if usual.is_symlink() else [usual]), *caches(top), *([named.absolute()] if named else [])]
    for folder in dict.fromkeys(folders):
        try:
            removed, size = remove(folder)
        except OSError as error:
            where = display(Path(error.filename or folder))
            raise UsageError(f"cannot remove {where}: {error.strerror}") from error
        if removed and not arguments.quiet:
            files = "1 file" if removed == 1 else f"{removed} files"
            print(f"Removed {harmless(display(folder))}: {files}, {size / 1e6:.1f} MB")
            if folder.exists():
                print(f"ta-lint: {harmless(display(folder))} stays: it holds what ta-lint did not write")
    return CLEAN
