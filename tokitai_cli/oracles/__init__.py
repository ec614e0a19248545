"""What a correct kernel must give: references with derived bounds, replays, and identities."""

from tokitai_cli.oracles.registry import (
    expect,
    identity,
    is_user,
    names,
    own_files,
    replay,
    replay_names,
    require_fit,
    stated_properties,
)

__all__ = [
    "expect",
    "identity",
    "is_user",
    "names",
    "own_files",
    "replay",
    "replay_names",
    "require_fit",
    "stated_properties",
]
