"""Notebook pages that run in forks of the build: a page starts no kernel, imports little, and changes no other page."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from base64 import b64encode
from multiprocessing import get_context
from typing import Any

import matplotlib
import matplotlib.figure
import sympy  # noqa: F401 - once, not once for each page
from dark_pictures import drawn
from IPython.core import pylabtools
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from jupyter_cache.executors import utils
from nbclient import execute
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_output

import iomodel.plots  # noqa: F401

FORKS = get_context("fork")
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
OUTPUTS: list[Any] = []
"""Outputs of the cell that runs."""


def keep(kind: str, data: dict[str, Any], metadata: dict[str, Any] | None) -> None:
    """Keep the representations of an object as an output, pictures as text."""
    texts = {name: b64encode(value).decode() if isinstance(value, bytes) else value for name, value in data.items()}
    OUTPUTS.append(new_output(kind, texts, metadata=metadata or {}))


class Stream:
    """A stream whose text becomes an output."""

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, text: str) -> int:
        if OUTPUTS and OUTPUTS[-1].get("name") == self.name:
            OUTPUTS[-1].text += text
        elif text:
            OUTPUTS.append(new_output("stream", name=self.name, text=text))
        return len(text)

    def flush(self) -> None:
        """Hold nothing back."""


class Results(DisplayHook):
    """A display hook that keeps the value of the last expression of a cell."""

    def write_output_prompt(self) -> None:
        """Write no prompt."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        keep("execute_result", format_dict, md_dict)

    def finish_displayhook(self) -> None:
        """Write no end of a line."""


class Displays(DisplayPublisher):
    """A publisher that keeps the objects that a cell displays."""

    def publish(self, data: Any, metadata: Any = None, **_: Any) -> None:
        keep("display_data", data, metadata)


class Shell(InteractiveShell):
    """An interpreter without a terminal."""

    displayhook_class = Results
    display_pub_class = Displays

    def enable_gui(self, gui: str | None = None) -> None:
        """Run no event loop: pictures are inline."""


def outputs(sources: list[str], cwd: str) -> tuple[list[list[Any]], str]:
    """Run the cells of a page in order; return the outputs of each, and the error that stopped the page."""
    gc.freeze()  # what the build holds outlives the fork
    os.chdir(cwd)
    matplotlib.use("module://matplotlib_inline.backend_inline")  # for pyplot
    shell, done = Shell.instance(), list[list[Any]]()
    shell.display_formatter.formatters["image/png"].for_type(matplotlib.figure.Figure, drawn)
    pylabtools.print_figure = lambda figure, **_: drawn(figure)  # by which pyplot replaces it
    for source in sources:
        OUTPUTS.clear()
        sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")  # type: ignore[assignment]
        result = shell.run_cell(source, store_history=True)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        if error := result.error_before_exec or result.error_in_exec:
            return done, f"{source}\n{''.join(traceback.format_exception(error))}"
        done.append([*OUTPUTS])
    return done, ""


def run(nb: Any, cwd: str, timeout: int, **_: Any) -> Any:
    """Run the notebook `nb` in a fork, within `timeout` seconds for each of its cells."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    receiver, sender = FORKS.Pipe(duplex=False)
    fork = FORKS.Process(target=lambda: sender.send(outputs([cell.source for cell in cells], cwd)))
    fork.start()
    sender.close()
    try:
        made, error = (
            receiver.recv() if receiver.poll(timeout * len(cells)) else ([], f"no end within {timeout} s a cell")
        )
    except EOFError:
        made, error = [], "the interpreter ended"
    fork.kill()
    fork.join()
    if error:
        raise CellExecutionError(error, "Error", error)
    for count, (cell, each) in enumerate(zip(cells, made, strict=True), 1):
        cell.outputs, cell.execution_count = each, count
    nb.metadata["language_info"] = LANGUAGE
    return nb


def setup(_app: Any) -> dict[str, Any]:
    """Run the notebooks of the build through `run`."""
    assert utils.executenb in (execute, run), "jupyter-cache runs notebooks elsewhere: patch that place"
    utils.executenb = run
    return {"parallel_read_safe": True, "parallel_write_safe": True}
