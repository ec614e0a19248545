"""A batch on many machines, over Dask distributed (extra `cluster`).

Importing it without the extra raises UsageError that says how to install it.
"""

from tokitai_cli.errors import UsageError

try:
    import distributed  # noqa: F401 - only looked for
except ImportError as error:
    raise UsageError(
        f"--executor dask needs packages that are not installed ({error})",
        mend="pip install 'tokitai[cluster]'",
    ) from error

from tokitai_cli.cluster.executor import DaskExecutor
from tokitai_cli.cluster.opening import open_executor
from tokitai_cli.cluster.security import TlsFiles

__all__ = ["DaskExecutor", "TlsFiles", "open_executor"]
