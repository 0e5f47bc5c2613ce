"""Sockets of the notebook kernels: files, since kernels that start at once may choose one TCP port twice."""

from tempfile import TemporaryDirectory
from typing import Any

from jupyter_cache.executors import utils
from nbclient import execute
from traitlets.config import Config


def run(nb: Any, **options: Any) -> Any:
    """Run the notebook `nb` on a kernel whose sockets are files in a folder of its own."""
    with TemporaryDirectory() as folder:
        sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
        return execute(nb, config=Config({"KernelManager": sockets}), **options)


def setup(_app: Any) -> dict[str, Any]:
    """Run the notebooks of the build through `run`."""
    assert utils.executenb in (execute, run), "jupyter-cache runs notebooks elsewhere: patch that place"
    utils.executenb = run
    return {"parallel_read_safe": True, "parallel_write_safe": True}
