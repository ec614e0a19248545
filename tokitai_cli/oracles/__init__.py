"""What a correct kernel must give: references with derived bounds, and bit-exact replays."""

from tokitai_cli.oracles.registry import expect, identity, is_user, names, replay, replay_names

__all__ = ["expect", "identity", "is_user", "names", "replay", "replay_names"]
