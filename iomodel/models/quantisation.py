"""Quantisation schemes of checkpoints: formats of several tools, as one rule from module names to types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any, Literal

from iomodel.errors import InputError, shown
from iomodel.models.config_fields import Fields
from iomodel.workloads.dtypes import WEIGHT_SIZE

NESTED_QUANTIFIER = re.compile(r"\((?:[^()\\]|\\.)*[*+}](?:[^()\\]|\\.)*\)\s*[*+{]")
"""Regular expressions that may take exponential time."""
SHELL = re.compile(r"[*?\[]")
LONGEST = 500
"""Longest pattern of a list of modules [characters]."""


def segments(entries: Iterable[Any] | None) -> ModuleList | None:
    """Build the list of modules given as parts of dotted names, possibly with stars."""
    return _listed(entries, anywhere=True)


def globs(entries: Iterable[Any] | None) -> ModuleList | None:
    """Build the list of modules given as shell patterns for whole names."""
    return _listed(entries, anywhere=False)


def expressions(entries: Iterable[Any] | None) -> ModuleList | None:
    """Build the list of modules given as names, and as regular expressions after "re:"."""
    texts = _texts(entries)
    patterns = [text.removeprefix("re:") for text in texts if text.startswith("re:")]
    for pattern in patterns:
        if NESTED_QUANTIFIER.search(pattern):
            raise InputError(
                f"ignore: {shown(pattern)} given; allowed: regular expressions without a repeated group that repeats"
            )
    names = frozenset(text for text in texts if not text.startswith("re:"))
    joined = _compiled("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
    return ModuleList(names, frozenset(), joined) if texts else None


def _listed(entries: Iterable[Any] | None, anywhere: bool) -> ModuleList | None:
    texts = _texts(entries)
    names = {text for text in texts if not SHELL.search(text)}
    starts = set() if anywhere else {text[:-1] for text in texts if text.endswith("*") and not SHELL.search(text[:-1])}
    rest = [text for text in texts if text not in names and text[:-1] not in starts]
    before = r"(?:.*\.)?" if anywhere else ""
    parts = "|".join(_shell(text) for text in rest)
    pattern = _compiled(rf"{before}(?:{parts})(?:\..*)?$") if rest else None
    return ModuleList(frozenset(names), frozenset(starts), pattern, anywhere) if texts else None


def _shell(text: str) -> str:
    """Translate a shell pattern to a regular expression."""
    return re.sub(r"\\[Zz]$", "", translate(text))


@dataclass(frozen=True)
class ModuleList:
    """A list of modules, each of which includes its submodules.

    Attributes
    ----------
    names, starts : names of modules; beginnings of names.
    pattern : a regular expression for further names.
    anywhere : a name may be any part of a dotted name.
    """

    names: frozenset[str]
    starts: frozenset[str]
    pattern: re.Pattern[str] | None
    anywhere: bool = False

    def match(self, name: str) -> bool:
        """Check whether a module is in the list.

        >>> ModuleList(frozenset({"attn"}), frozenset(), None, anywhere=True).match("layers.0.attn.q_proj")
        True
        """
        parts = name.split(".")
        firsts = range(len(parts)) if self.anywhere else (0,)
        ends = range(1, len(parts) + 1)
        if self.names and any(".".join(parts[i:j]) in self.names for i in firsts for j in ends if i < j):
            return True
        if self.starts and any(name[:size] in self.starts for size in range(len(name) + 1)):
            return True
        return self.pattern is not None and self.pattern.match(name) is not None


def _texts(entries: Iterable[Any] | None) -> list[str]:
    texts = [entry for entry in entries or () if entry != "Linear"]
    for text in texts:
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
            raise InputError(f"quantization_config: {shown(text)} given in a list of modules; allowed: names")
    return texts


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"quantization_config: a pattern of modules is invalid ({error}); allowed: patterns") from None


Part = Literal["dense", "expert", "head"]

_TYPES = {
    "fp8": ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "FP8_BLOCK_SCALES"),
    "nvfp4": ("NVFP4", "W4A16_NVFP4", "W4A8_NVFP4_FP8", "NVFP4_AWQ"),
    "mxfp8": ("MXFP8",),
    "mxfp4": ("MXFP4", "W4A8_MXFP4_FP8"),
    "int8": ("INT8", "W8A16", "W8A8_SQ_PER_CHANNEL", "INT8_SQ"),
    "int4-g128": ("W4A16", "INT4_AWQ", "W4A16_AWQ", "W4A8_AWQ"),
}
ALGORITHMS = {name: kind for kind, names in _TYPES.items() for name in names}
"""Types of weights by the algorithms of NVIDIA ModelOpt."""


@dataclass(frozen=True)
class Scheme:
    """A rule from the names of modules to types.

    Attributes
    ----------
    default : type of matrices, or None if only those in `targets` are quantised.
    expert : type of the matrices of experts, if different.
    heads : the output layer is a matrix like others.
    excluded : matcher of modules that are not quantised.
    targets : matchers of modules with a type of their own, tried in order.
    exact : types of modules by name.
    kv_dtype : recommended type of the cache.
    unsupported : name of a method that is not supported.
    """

    default: str | None = None
    expert: str | None = None
    heads: bool = True
    excluded: ModuleList | None = None
    targets: tuple[tuple[ModuleList, str], ...] = ()
    exact: Mapping[str, str] = field(default_factory=dict)
    kv_dtype: str | None = None
    unsupported: str | None = None
    experts_only: bool = False

    @property
    def uniform(self) -> bool:
        """True if all layers of a kind have the same types."""
        return self.excluded is None and not self.targets and not self.exact

    def mentions(self, path: str) -> bool:
        """Check whether a list names modules inside a path."""
        lists = [modules for modules in (self.excluded, *(entry for entry, _ in self.targets)) if modules is not None]
        texts = [self.exact, *(modules.names for modules in lists), *(modules.starts for modules in lists)]
        return any(text.startswith(f"{path}.") for group in texts for text in group)

    def of(self, names: Sequence[str], part: Part) -> str | None:
        """Return the type of a module with one of several possible names, None if it is not quantised."""
        if self.excluded is not None and any(map(self.excluded.match, names)):
            return None
        for name in names:
            if name in self.exact:
                return self.exact[name]
        for pattern, kind in self.targets:
            if any(map(pattern.match, names)):
                return kind
        if (part == "head" and not self.heads) or (self.experts_only and part != "expert"):
            return None
        return (self.expert if part == "expert" else None) or self.default


def read_scheme(fields: Fields, outer: Fields, beside: Mapping[str, Any] | None, notes: list[str]) -> Scheme | None:
    """Read the quantisation of a checkpoint from `quantization_config`, or from the file beside config.json."""
    holder = outer if outer.given("quantization_config") is not None else fields
    inside = holder.inside("quantization_config")
    if inside is None and beside is not None:
        inside = Fields(beside, "hf_quant_config.json: ").inside("quantization")
    if inside is None:
        return None
    method = inside.text("quant_method")
    if method is None and inside.given("quant_algo") is not None:
        method = "modelopt"
    reader = READERS.get(str(method))
    if reader is None:
        return Scheme(unsupported=str(method))
    expert = fields.text("expert_dtype") or inside.text("expert_dtype")
    scheme: Scheme = reader(_as_lists(inside))
    if scheme.default is None and not scheme.targets and not scheme.exact:
        return Scheme(unsupported=f"{method} without a type of weights")
    if scheme.exact:
        notes.append("The types of the weights are those of the list of quantised modules; modules not in it are not.")
    elif method == "modelopt" and scheme.excluded is None:
        notes.append("The quantisation names no module that is left out, so all matrices are taken as quantised.")
    kv_dtype = _kv_dtype(inside, notes)
    if kv_dtype is None and beside is not None:
        kv_dtype = _kv_dtype(Fields(beside, "hf_quant_config.json: ").inside("quantization") or inside, notes)
    types = {"fp4": "mxfp4", "fp8": "fp8", None: scheme.expert}
    if expert not in types:
        raise InputError(f"{fields.path('expert_dtype')}: {shown(expert)} given; allowed: fp4, fp8")
    return Scheme(**{**vars(scheme), "kv_dtype": kv_dtype, "expert": types[expert]})


LISTS = ("modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "ignore", "exclude_modules", "exclude")
"""Fields with a list of modules that are not quantised."""
CACHES = {
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8": "fp8",
    "int8": "int8",
    "nvfp4": "nvfp4",
    "int4": "int4",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
}
"""Types of caches by the names of recommendations, in lower case."""
SCHEMES = {(8, "float"): "fp8", (8, "int"): "int8", (4, "float"): "nvfp4", (4, "int"): "int4"}
"""Types of caches by the bits and the kind of a scheme."""


def _as_lists(inside: Fields) -> Fields:
    """Take a text in place of a list of modules as a list of one, as in `"ignore": "lm_head"`."""
    texts = {name: [inside.given(name)] for name in LISTS if isinstance(inside.given(name), str)}
    return inside.over(texts) if texts else inside


def _kv_dtype(inside: Fields, notes: list[str]) -> str | None:
    """Read the recommended type of the cache, which is a name or a scheme."""
    for name_of in ("kv_cache_quant_algo", "kv_cache_scheme"):
        given = inside.given(name_of)
        if given in (None, "", "None", "none", "auto", False):
            continue
        name = CACHES.get(given.lower()) if isinstance(given, str) else None
        if isinstance(given, dict):
            scheme = Fields(given, inside.path(f"{name_of}."), unread=inside.unread)
            bits, kind = scheme.optional(scheme.maybe, "num_bits"), scheme.optional(scheme.text, "type")
            name = SCHEMES.get((bits, kind))
        if name is None:
            notes.append(f"The recommended type of the cache, {shown(given, 80)}, is not supported; bf16 is assumed.")
        return name
    return None


def _skipped(inside: Fields) -> list[Any] | None:
    for name in LISTS[:4]:
        listed = inside.listed(name)
        if listed:
            return listed
    return None


def _fp8(inside: Fields) -> Scheme:
    """Read a scheme in fp8, of which NVIDIA ModelOpt may have quantised some modules further.

    Those that ModelOpt left out (`ignore`) then stay in fp8.
    """
    further = _exact(inside)
    listed = inside.given("modules_to_not_convert") if further else _skipped(inside)
    return Scheme("fp8", heads=False, excluded=segments(listed), exact=further)


def _mxfp4(inside: Fields) -> Scheme:
    return Scheme("mxfp4", heads=False, excluded=segments(_skipped(inside)), experts_only=True)


def grouped(bits: int | None, group: int | None, path: str, zeros: bool = False) -> str:
    """Name the type of integers with a scale, and possibly a zero point, for each group of weights.

    >>> grouped(8, 128, "bits"), grouped(4, 128, "bits", zeros=True), grouped(4, -1, "bits")
    ('int8-g128', 'uint4-g128', 'int4')
    """
    if bits not in (2, 3, 4, 8):
        raise InputError(f"{path}: {bits} bits given; allowed: 2, 3, 4, 8")
    name = f"{'u' * zeros}int{bits}-g{group}"
    return name if name in WEIGHT_SIZE else f"int{bits}"


def _integers(inside: Fields) -> Scheme:
    """Read a scheme of GPTQ, AWQ or AutoRound, whose files hold zero points even where these are all alike."""
    bits = inside.maybe("bits", "w_bit")
    group = inside.maybe("group_size", "q_group_size", least=-1)
    head = inside.flag("lm_head")
    kind = grouped(bits, group, inside.path("bits"), zeros=True)
    return Scheme(kind, heads=head, excluded=segments(_skipped(inside)))


def _bitsandbytes(inside: Fields) -> Scheme:
    four = inside.flag("load_in_4bit", inside.flag("_load_in_4bit"))
    double = inside.flag("bnb_4bit_use_double_quant")
    kind = ("nf4-double" if double else "nf4") if four else "int8"
    return Scheme(kind, heads=False, excluded=segments(_skipped(inside) or ["lm_head"]))


def weights_type(weights: Fields, form: str | None = None) -> str:
    """Name the type of weights from their bits, kind, group and format."""
    bits, group, kind = weights.maybe("num_bits"), weights.maybe("group_size", least=-1), weights.text("type") or "int"
    if kind == "float" and bits == 8:
        return "mxfp8" if group == 32 else "fp8"
    if kind == "float" and bits == 4:
        return "mxfp4" if group == 32 or (form or "").startswith("mxfp4") else "nvfp4"
    return grouped(bits, group, weights.path("num_bits"), zeros=weights.given("symmetric") is False)


def _groups(inside: Fields, excluded: ModuleList | None, default: str | None = None) -> Scheme:
    """Read groups of targets with the format of their weights."""
    groups = inside.inside("config_groups")
    if groups is None:
        return Scheme(default, excluded=excluded)
    targets: list[tuple[ModuleList, str]] = []
    for name in groups.names():
        group = groups.inside(name)
        weights = None if group is None else group.inside("weights")
        if group is None or weights is None:
            continue
        kind = weights_type(weights, group.text("format") or inside.text("format"))
        listed = group.listed("targets") or ["Linear"]
        if "Linear" in listed:
            default = kind
        pattern = expressions(listed)
        if pattern is not None:
            targets.append((pattern, kind))
    return Scheme(default, excluded=excluded, targets=tuple(targets))


def _compressed(inside: Fields) -> Scheme:
    return _groups(inside, expressions(inside.listed("ignore")))


def _modelopt(inside: Fields) -> Scheme:
    """Read a scheme of NVIDIA ModelOpt, as in hf_quant_config.json or in config.json."""
    excluded = globs(inside.listed("exclude_modules") or inside.listed("ignore"))
    algorithm = inside.text("quant_algo")
    exact = _exact(inside)
    if exact:
        return Scheme(excluded=excluded, exact=exact)
    if algorithm is None:
        return _groups(inside, excluded)
    if algorithm not in ALGORITHMS:
        if inside.given("config_groups") is not None:
            return _groups(inside, excluded)
        raise InputError(f"{inside.path('quant_algo')}: {shown(algorithm)} given; allowed: {_algorithms()}")
    kind = ALGORITHMS[algorithm]
    group = inside.maybe("group_size")
    if kind.startswith("int4"):
        kind = grouped(4, group or 128, inside.path("group_size"))
    return Scheme(kind, excluded=excluded)


def _exact(inside: Fields) -> dict[str, str]:
    """Read the list of quantised modules of NVIDIA ModelOpt, each with its algorithm."""
    exact: dict[str, str] = {}
    for module, rule in (inside.mapping("quantized_layers") or {}).items():
        algorithm = rule.get("quant_algo") if isinstance(rule, dict) else rule
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InputError(f"{inside.path('quantized_layers')}: {shown(algorithm)} given; allowed: {_algorithms()}")
        kind = ALGORITHMS[algorithm]
        group = (
            Fields(rule, inside.path(f"{module}.")).maybe("group_size", least=-1) if isinstance(rule, dict) else None
        )
        exact[str(module)] = (
            grouped(4, group or 128, inside.path(f"{module}.group_size")) if kind.startswith("int4") else kind
        )
    return exact


def _algorithms() -> str:
    return ", ".join(ALGORITHMS)


def _quark(inside: Fields) -> Scheme:
    """Read a scheme of AMD Quark: one format for all modules, others by pattern, and a list of exclusions."""
    excluded = globs(inside.listed("exclude"))
    whole = inside.inside("global_quant_config")
    default = None if whole is None else _quark_type(whole)
    targets: list[tuple[ModuleList, str]] = []
    by_layer = inside.inside("layer_quant_config")
    for name in by_layer.names() if by_layer is not None else ():
        rule = by_layer.inside(name) if by_layer is not None else None
        kind = None if rule is None else _quark_type(rule)
        pattern = globs([name])
        if kind is not None and pattern is not None:
            targets.append((pattern, kind))
    return Scheme(default, excluded=excluded, targets=tuple(targets))


def _quark_type(rule: Fields) -> str | None:
    weight = rule.given("weight")
    if isinstance(weight, list):
        weight = weight[0] if weight else None
    if not isinstance(weight, dict):
        return None
    inside = Fields(weight, rule.path("weight."))
    kind, group = inside.text("dtype"), inside.maybe("group_size", least=-1)
    fixed = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "fp4": "mxfp4", "int8": "int8", "uint8": "int8"}
    if kind in ("int4", "uint4"):
        return grouped(4, group, inside.path("group_size"))
    if kind not in fixed:
        raise InputError(f"{inside.path('dtype')}: {shown(kind)} given; allowed: {', '.join(fixed)}, int4, uint4")
    return fixed[kind]


READERS = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "gptq": _integers,
    "awq": _integers,
    "auto-round": _integers,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "quark": _quark,
}
"""Readers of quantisation methods by their names."""
