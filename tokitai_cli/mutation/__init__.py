"""Changes of a kernel's own source, one at a time: which of them the checks of its spec notice."""

from tokitai_cli.mutation.places import Change, changes_of
from tokitai_cli.mutation.told import told
from tokitai_cli.mutation.trial import End, Trial, TrialReport, mutate

__all__ = ["Change", "End", "Trial", "TrialReport", "changes_of", "mutate", "told"]
