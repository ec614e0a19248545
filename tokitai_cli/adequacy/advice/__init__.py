"""What checks, profiles and shapes of a spec cannot tell, each with the line that would mend it."""

from tokitai_cli.adequacy.advice.all_advice import advise, apply
from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.score import score

__all__ = ["Advice", "Edit", "advise", "apply", "score"]
