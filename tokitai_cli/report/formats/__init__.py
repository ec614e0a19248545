"""The table of report formats: another one is a module here and a line below."""

from tokitai_cli.report.format import Format
from tokitai_cli.report.formats import exact_json, junit, markdown

# The JSON file of an index comes last: where it is there, all the others are.
FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("md", ".md", markdown.evidence, markdown.index, "index.md"),
        Format("junit", ".xml", None, junit.index, "junit.xml"),
        Format("json", ".json", exact_json.evidence, exact_json.index, "index.json"),
    )
}
