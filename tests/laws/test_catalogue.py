"""The catalogue of algorithms equals their declarations."""

from __future__ import annotations

import json
from pkgutil import iter_modules

from iomodel import algorithms
from iomodel.algorithms import _catalogue, algorithm, discovered
from iomodel.algorithms._shipped import ShippedAlgorithm, declared_in, listed, plain, unplain

MODULES = [info.name for info in iter_modules(algorithms.__path__) if not info.name.startswith("_")]


def test_the_catalogue_has_what_the_declarations_say() -> None:
    entries = _catalogue()
    declared = {found.name: listed(name, found) for name in MODULES for found in declared_in(name)}
    assert entries == declared == unplain(json.loads(json.dumps(plain(declared))))
    for name, found in discovered().items():
        assert isinstance(found, ShippedAlgorithm)
        assert algorithm(found.declaration) is found
        assert found.shipped == name
