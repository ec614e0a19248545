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
        help="suite of the specs; `quick` where a spec has it, else its default shape",
    )
    group.addoption(
        "--tokitai-device",
        default="auto",
        metavar="NAME",
        help="device that runs the kernels: rocm, cuda, cpu, gfx, all, or the first of the first "
        "three that is there (auto, the default)",
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
    wanted = [*asked, *usual] if _takes_testpaths(config) else asked
    missing = [path for path in wanted if not _named_inside(config, path.resolve())]
    config.args += [str(path) for path in dict.fromkeys(missing)]
    from tokitai_cli.pytest_plugin.collector import SpecCollector

    roots = tuple(dict.fromkeys(path.resolve() for path in (*asked, *usual)))
    collector = SpecCollector(config, roots, wanted=bool(wanted))
    config.pluginmanager.register(collector, "tokitai-specs")


def _takes_testpaths(config: pytest.Config) -> bool:
    """Whether the command line leaves it to the configuration file what is collected."""
    source, sources = config.args_source, pytest.Config.ArgsSource
    here = config.invocation_params.dir == config.rootpath
    return source is sources.TESTPATHS or (source is sources.INVOCATION_DIR and here)


def _named_inside(config: pytest.Config, folder: Path) -> bool:
    """Whether the command line names the folder, or only some file or case in it."""
    here = config.invocation_params.dir
    paths = [(here / arg.partition("::")[0]).resolve() for arg in config.args]
    return any(path.is_relative_to(folder) for path in paths)
