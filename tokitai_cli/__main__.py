"""`python -m tokitai_cli` is `tokitai`."""

from __future__ import annotations

from tokitai_cli.cli.main import main

if __name__ == "__main__":
    main()
