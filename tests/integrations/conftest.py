"""NVIDIA's reader of binary reports is published for Linux alone: elsewhere, its tests are not collected."""

import sys

collect_ignore = [] if sys.platform == "linux" else ["test_binary_report.py"]
