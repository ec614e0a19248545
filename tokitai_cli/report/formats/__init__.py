"""The table of report formats: another one is a module here and a line below."""

from tokitai_cli.report.format import Format
from tokitai_cli.report.formats import (
    code_quality,
    csv_table,
    exact_json,
    figures_pdf,
    html,
    json_text,
    junit,
    latex,
    latex_page,
    markdown,
)

# The JSON file of an index comes last: where it is there, all the others are.
FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("md", ".md", markdown.evidence, markdown.index, "index.md", joins=True),
        Format("html", ".html", html.evidence, html.index, "index.html", joins=True),
        Format("latex", ".tex", latex.table, None, joins=True),
        Format("appendix", ".appendix.tex", latex_page.evidence, None, joins=True),
        Format("macros", ".macros.tex", latex.macros, None),
        Format(
            "figures", ".figures.pdf", figures_pdf.evidence, None, joins=True, needs="matplotlib"
        ),
        Format("junit", ".xml", junit.evidence, junit.index, "junit.xml"),
        Format("csv", ".csv", csv_table.evidence, None, joins=True),
        Format("sarif", ".sarif", json_text.sarif, json_text.sarif_index, "index.sarif"),
        Format(
            "codequality",
            ".codequality.json",
            code_quality.evidence,
            code_quality.index,
            "codequality.json",
        ),
        Format("intoto", ".intoto.json", json_text.statement, None),
        Format("json", ".json", exact_json.evidence, exact_json.index, "index.json"),
    )
}
