"""Evidence: assembled from what the stages recorded, written and read as strict JSON."""

from tokitai_cli.evidence.assembly import (
    Outcome,
    Parts,
    assemble,
    counted,
    unsupported,
    verified_reason,
)
from tokitai_cli.evidence.claims import gates, gates_by_device, supported_by_all
from tokitai_cli.evidence.encoding import canonical, digest, to_json
from tokitai_cli.evidence.files import read, read_record, write, write_file
from tokitai_cli.evidence.joined_runs import JoinedEvidence, Run, joined, runs_of
from tokitai_cli.evidence.json_schema import schema
from tokitai_cli.evidence.non_claims import own_non_claims
from tokitai_cli.evidence.private import index_without_folders
from tokitai_cli.evidence.statements import at_pointer
from tokitai_cli.evidence.tool import begin_tool_record, source_record, timestamp, tool_record
from tokitai_cli.evidence.vacuity import groups, mark_vacuous

__all__ = [
    "JoinedEvidence",
    "Outcome",
    "Parts",
    "Run",
    "assemble",
    "at_pointer",
    "begin_tool_record",
    "canonical",
    "counted",
    "digest",
    "gates",
    "gates_by_device",
    "groups",
    "index_without_folders",
    "joined",
    "mark_vacuous",
    "own_non_claims",
    "read",
    "read_record",
    "runs_of",
    "schema",
    "source_record",
    "supported_by_all",
    "timestamp",
    "to_json",
    "tool_record",
    "unsupported",
    "verified_reason",
    "write",
    "write_file",
]
