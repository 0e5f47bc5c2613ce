"""Offer the numbered notebooks as .ipynb files, with the outputs of this build, from a link below their title."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx

NOTEBOOK = re.compile(r"notebooks/\d-[\w-]+")
LINK = '<p class="notebook-download"><a download href="{name}.ipynb">Download as a Jupyter notebook</a></p>'


def portable(notebook: Any) -> Any:
    """The same notebook for a reader without the other pages: links to them are text, solutions are folded."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", cell.source)
        elif "hide-cell" in cell.metadata.get("tags", []):
            cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
    nbformat.validate(notebook)
    return notebook


def add_link(_app: Sphinx, pagename: str, _template: str, context: dict[str, Any], doctree: object) -> None:
    """Put the link below the title."""
    if doctree is not None and NOTEBOOK.fullmatch(pagename):
        link = LINK.format(name=pagename.rpartition("/")[2])
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{link}", 1)


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the files to where the links point; the notebooks that ran lie in a folder of MyST-NB."""
    if exception is not None or app.builder.format != "html":
        return
    executed = Path(app.env.mystnb_config.output_folder)
    for name in filter(NOTEBOOK.fullmatch, app.env.found_docs):
        notebook = nbformat.read(executed / f"{name}.ipynb", as_version=4)
        nbformat.write(portable(notebook), Path(app.outdir) / f"{name}.ipynb")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_link)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
