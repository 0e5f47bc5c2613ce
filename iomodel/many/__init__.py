"""Many problems solved at once: the search of :mod:`iomodel.search` over arrays."""
