"""Names of the features of a call and of the options as written, in the order in which they change a nest."""

FEATURE_NAMES = (
    "latent",
    "kv_dtype",
    "head_scales",
    "token_scales",
    "paged",
    "bias",
    "softcap",
    "alibi",
    "sinks",
    "dropout",
)

AS_WRITTEN = {
    "padded_statistics": "stores or loads no statistics of a tile of rows",
    "masked_loads": "streams no keys past a query tile",
    "eager_loads": "keeps no tile that depends on what it sees",
    "unskipped_window": "skips no tiles",
    "padded_queries": "skips no tiles by the rows of a query tile",
    "bias_vector": "loads no bias",
    "order": "walks no keys, tile by tile, as the only loop of a query tile",
}
"""The options of any nest that count what the source of a kernel does, with the reason where one has no meaning."""
WORDS = {"order": ("plain", "serpentine")}
"""The values of those that are not switches; the first is the default."""
APART = {"order": ("masked_loads", "bias_vector")}
"""Those that no kernel combines: of a tile that is kept, the next query tile may see more, or add another bias."""
BAND_ONLY = ("masked_loads", "unskipped_window", "padded_queries", "order")
"""Those that are defined for the edges of a band, not for a mask given by data."""


def default_of(name: str) -> bool | str:
    """Return the value of an option as written that changes nothing."""
    return WORDS[name][0] if name in WORDS else False


def other_of(name: str) -> bool | str:
    """Return the value of an option as written that changes a nest."""
    return WORDS[name][1] if name in WORDS else True
