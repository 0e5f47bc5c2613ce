"""Triton is published for Linux alone: elsewhere, tests that run its interpreter are not collected."""

import sys

NEED_TRITON = ["kernels.py", "language_state.py", *(f"test_{name}.py" for name in (
    "count", "count_predictions", "count_refusals", "infer", "library_functions",
))]  # fmt: skip
collect_ignore = [] if sys.platform == "linux" else NEED_TRITON
