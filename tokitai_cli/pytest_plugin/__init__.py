"""pytest plugin: the cases of spec files as tests, beside a project's own.

Every pytest run of everybody who has the tool installed imports this module, so it imports nothing but
what pytest has loaded already; the rest comes with the first folder of specs. See docs/ci.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

MARKER = "tokitai: a case of a spec file, collected from --tokitai-specs"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the plugin, and the folders as a key of the configuration file."""
    group = parser.getgroup("tokitai", "kernels verified by spec files")
    group.addoption(
        "--tokitai-specs",
        action="append",
        default=[],
        metavar="DIR",
        help="folder of spec files (or one file) whose cases are tests; may be repeated",
    )
    group.addoption(
        "--tokitai-suite",
        action="append",
        default=[],
        metavar="NAME",
        help="suite of the specs; default: `quick` if a spec has it, otherwise its default shape",
    )
    group.addoption(
        "--tokitai-device",
        default="auto",
        metavar="NAME",
        help=(
            "device that runs the kernels: its name, all, or auto (the default), as for "
            "`tokitai verify`"
        ),
    )
    parser.addini(
        "tokitai_specs",
        "folders of spec files, from the configuration file's own; collected like testpaths",
        type="paths",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the folders of specs beside what pytest was asked for.

    A folder of the command line is collected, unless that names something in it. One of the
    configuration file is collected where `testpaths` would be: not where the command line names other
    tests. Raises UsageError for a folder that is not there.
    """
    config.addinivalue_line("markers", MARKER)
    asked = [config.invocation_params.dir / name for name in config.getoption("tokitai_specs")]
    usual = [Path(path) for path in config.getini("tokitai_specs")]
    if not asked and not usual:
        return
    for path in (*asked, *usual):
        if not path.exists():
            raise pytest.UsageError(f"tokitai specs: {path} is not there")
    wanted = _added(config, [*asked, *usual] if _takes_testpaths(config) else asked)
    from tokitai_cli.pytest_plugin.collector import SpecCollector

    roots = tuple(dict.fromkeys(path.resolve() for path in (*asked, *usual)))
    config.pluginmanager.register(SpecCollector(config, roots, wanted), "tokitai-specs")


def _takes_testpaths(config: pytest.Config) -> bool:
    """Whether the command line leaves it to the configuration file what is collected."""
    source, sources = config.args_source, pytest.Config.ArgsSource
    here = config.invocation_params.dir == config.rootpath
    return source is sources.TESTPATHS or (source is sources.INVOCATION_DIR and here)


def _added(config: pytest.Config, folders: list[Path]) -> list[Path]:
    """Add to pytest's arguments those folders that none of them covers; returns what is wanted whole.

    An argument inside another one is not added: pytest 8 then forgets the rest of the outer one.
    """
    here = config.invocation_params.dir
    given = [(here / arg.partition("::")[0]).resolve() for arg in config.args]
    wanted = []
    for folder in folders:
        real = folder.resolve()
        if any(path != real and path.is_relative_to(real) for path in given):
            continue  # only something inside it was asked for
        if not any(real.is_relative_to(path) for path in given):
            config.args.append(str(folder))
            given.append(real)
        wanted.append(real)
    return wanted
