"""What checks, profiles and shapes of a spec cannot tell, each with the line that would mend it."""

from tokitai_cli.advice.advise import advise, apply
from tokitai_cli.advice.edit import Advice, Edit

__all__ = ["Advice", "Edit", "advise", "apply"]
