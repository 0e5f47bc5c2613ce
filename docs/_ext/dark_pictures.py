"""A dark twin of every drawn picture: the same figure, drawn again with the inks of a dark page."""

from __future__ import annotations

import re
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any

from iomodel.plots.dark import dark

if TYPE_CHECKING:
    from sphinx.application import Sphinx

IMAGE = re.compile(r'<img (?P<before>[^>]*)src="(?P<folder>[^"]*_images/)(?P<name>[\w-]+)\.png"(?P<after>[^>]*)>')
TWIN = (
    '<img {before}class="only-light" src="{folder}{name}.png"{after}>'
    '<img {before}class="only-dark" src="{folder}{name}-dark.png"{after}>'
)
TWINS = Path(__file__).parents[1] / "_build" / "twins"
"""The folder of the twins, each under the digest of its light picture."""


def drawn(figure: Any) -> tuple[bytes, dict[str, float]]:
    """Draw a figure as PNG at twice the resolution of a screen, and its dark twin into the folder of twins."""
    light = _png(figure)
    with dark(figure):
        twin = _png(figure)
    TWINS.mkdir(parents=True, exist_ok=True)
    _twin_of(light).write_bytes(twin)
    return light, {"width": 96 * figure.get_figwidth()}


def _png(figure: Any) -> bytes:
    data = BytesIO()
    figure.savefig(data, format="png", dpi=2 * 96)
    return data.getvalue()


def _twin_of(light: bytes) -> Path:
    return TWINS / f"{sha256(light).hexdigest()}.png"


def add_twins(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], doctree: object) -> None:
    """Put a dark picture beside each light one; the theme shows one of the two."""
    if doctree is not None:
        context["body"] = IMAGE.sub(lambda image: TWIN.format(**image.groupdict()), context["body"])


def write_twins(app: Sphinx, exception: Exception | None) -> None:
    """Write the dark pictures beside the light ones."""
    if exception is not None or app.builder.format != "html":
        return
    for light, (_, name) in app.env.images.items():
        if name.endswith(".png"):
            dark_name = name.removesuffix(".png") + "-dark.png"
            copyfile(_twin_of(Path(app.srcdir, light).read_bytes()), Path(app.outdir, app.builder.imagedir, dark_name))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_twins)
    app.connect("build-finished", write_twins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
