"""Run the Python blocks of the documentation as tests.

Fenced ```python blocks of one page share a namespace and run in order; the cells of notebook pages run in the
Sphinx build instead.
"""

import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

LINUX_ONLY = [] if sys.platform == "linux" else ["docs/triton-count.md", "iomodel/triton/kernel_counter.py"]  # Triton
collect_ignore = ["docs/conf.py", "docs/_ext", *LINUX_ONLY]  # docs/_ext needs Sphinx

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["docs/*.md", "docs/*/*.md", "README.md"],
    excludes=["docs/_build/*", *LINUX_ONLY],
).pytest()
