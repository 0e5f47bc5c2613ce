"""Sphinx: MyST pages with furo; notebook pages run at every build, so that no output outlives the code behind it."""

import gc
import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = str(DOCS.parent)
sys.path[:0] = [ROOT, str(DOCS / "_ext")]  # autodoc; our own extensions
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [ROOT, str(DOCS / "_ext"), os.environ.get("PYTHONPATH")])
)  # notebook kernels

gc.set_threshold(200_000)  # as in `iomodel`; at Python's 700, notebook pages take half as long again

project = "iomodel"
author = "iomodel contributors"
project_copyright = "iomodel contributors"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "algorithm_pages",
    "dark_pictures",
    "explorer_page",
    "gallery",
    "mathml",
    "notebook_downloads",
    "notebook_forks",
    "search_order",
]
exclude_patterns = ["_build", "jupyter_execute"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "iomodel"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_logo": "logo-light.svg",
    "dark_logo": "logo-dark.svg",
    "sidebar_hide_name": True,
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0067A0"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#6CBFEC"},
}
