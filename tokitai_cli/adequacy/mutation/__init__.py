"""Changes of a kernel's own source, one at a time: which of them the checks of its spec notice."""

from tokitai_cli.adequacy.mutation.mutating import End, Trial, TrialReport, mutate
from tokitai_cli.adequacy.mutation.sites import Change, changes_of
from tokitai_cli.adequacy.mutation.summary_text import summary_lines

__all__ = ["Change", "End", "Trial", "TrialReport", "changes_of", "mutate", "summary_lines"]
