"""Names of the features of a call, in the order in which they change a nest."""

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
