"""The directive `gallery`: a thumbnail of every picture of its page, with a link to the section that makes it."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class placeholder(nodes.General, nodes.Element):  # noqa: N801 - docutils' custom
    """Where the thumbnails go."""


class Gallery(SphinxDirective):
    """Pictures are known only when the code of the page has run."""

    def run(self) -> list[nodes.Node]:
        return [placeholder()]


def fill(_app: Sphinx, doctree: nodes.document, _name: str) -> None:
    """Put the thumbnails into their place."""
    for place in doctree.findall(placeholder):
        items = [thumbnail(image) for image in doctree.findall(nodes.image)]
        place.replace_self(nodes.container("", *items, classes=["gallery"]))


def thumbnail(image: nodes.image) -> nodes.Node:
    """The picture in small, with the title of its section."""
    section = image.parent
    while not isinstance(section, nodes.section):
        section = section.parent
    title = section.next_node(nodes.title).astext()
    small = nodes.image(uri=image["uri"], candidates=image["candidates"], alt=image.get("alt", title))
    link = nodes.reference("", "", small, nodes.inline(title, title), refuri=f"#{section['ids'][0]}", internal=True)
    return nodes.paragraph("", "", link)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(placeholder)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
