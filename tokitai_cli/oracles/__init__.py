"""What a correct kernel must give: references with derived bounds, replays, and identities."""

from tokitai_cli.oracles.registry import (
    expect,
    identities,
    identity,
    is_user,
    names,
    own_files,
    replay,
    require_fit,
    stated_properties,
)

__all__ = [
    "expect",
    "identities",
    "identity",
    "is_user",
    "names",
    "own_files",
    "replay",
    "require_fit",
    "stated_properties",
]
