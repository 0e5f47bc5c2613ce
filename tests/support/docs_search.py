"""Queries that people type into the search of the docs, each with the page that answers it: `python -m` with a build.

The pages were listed before the search was changed, and are not adapted to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.programs import program

QUERIES: Mapping[str, str] = {
    "best tile": "notebooks/2-pick-a-tile",
    "block size": "notebooks/2-pick-a-tile",
    "how many gpus": "plan",
    "H100": "hardware",
    "autotune": "triton",
    "bottleneck": "diagnose",
    "roofline": "pictures",
    "slow kernel": "diagnose",
    "install": "install",
    "arithmetic intensity": "nomenclature",
    "fp8 kv cache": "features",
    "tokens per second": "plan",
    "nsight compute": "audit",
    "lower bound": "theory",
}
"""The page that comes first for each query."""
LEAST = 12
"""Queries of which the page is first."""
SCRIPT = """
const [folder, queries] = [process.argv[1], JSON.parse(process.argv[2])], fs = require("fs"), vm = require("vm");
const page = { document: { getElementById: () => null }, localStorage: {}, SPHINX_HIGHLIGHT_ENABLED: false,
  _ready: () => {}, _: (text) => text, DOCUMENTATION_OPTIONS: {}, URLSearchParams, location: {} };
page.window = vm.createContext(page);
for (const name of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {
  vm.runInContext(fs.readFileSync(`${folder}/${name}`, "utf8"), page);
}
console.log(JSON.stringify(queries.map((query) => {
  page.location.search = `?q=${encodeURIComponent(query)}`;
  page.query = query;
  return vm.runInContext("Search._performSearch(...Search._parseQuery(query))", page).reverse().map(([one]) => one);
})));
"""


def found(folder: Path) -> dict[str, list[str]]:
    """Return the pages that the search of some built docs lists for each query, the first ones first."""
    command = [program("Node.js", "node"), "-e", SCRIPT, "--", str(folder), json.dumps(list(QUERIES))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return {query: list(dict.fromkeys(pages)) for query, pages in zip(QUERIES, json.loads(done.stdout), strict=True)}


def main(folder: Path) -> None:
    """Print the first pages of each query, and fail if too few are the right ones."""
    right = 0
    for query, pages in found(folder).items():
        right += pages[:1] == [QUERIES[query]]
        sys.stdout.write(f"{'ok' if pages[:1] == [QUERIES[query]] else '--'}  {query}: {', '.join(pages[:4])}\n")
    sys.stdout.write(f"{right} of {len(QUERIES)} queries have the right page first\n")
    if right < LEAST:
        sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
