"""Rules as source text: a Python function, a C++ function, a table."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from iomodel.common.display import percent
from iomodel.common.headers import package_version
from iomodel.common.validation import as_choice
from iomodel.studies.rules.terms import LETTERS, Term

if TYPE_CHECKING:
    from iomodel.studies.rules.rule_result import DeviceRule, Rule

MOST_BYTES = 40_000
"""Bytes that maintainers accept of a vendored rule [B]."""
WIDTH = 110
"""Characters of a line of a header."""


def check_form(form: str | None, rule: Rule) -> str:
    """Return the form if the rule is written in it, or the usual one."""
    allowed = rule.form_of_engine.forms
    return allowed[0] if form is None else as_choice("form", form, allowed)


def form_of(suffix: str, rule: Rule) -> str:
    """Return the form of a file by its ending."""
    by_ending = {".py": "python", ".json": "json" if "json" in rule.form_of_engine.forms else "table"}
    return by_ending.get(suffix.lower(), "cpp")


def bytes_of(rule: Rule) -> int:
    """Return the bytes of the longer of both functions."""
    return max(len(FORMS[form](rule).encode()) for form in rule.form_of_engine.forms if form != "table")


def name_of_function(rule: Rule) -> str:
    """Return the name of the function of a rule."""
    return rule.form_of_engine.function.format(rule.algorithm)


def identifier(hardware: str) -> str:
    """Return the name of a device in source text."""
    return "".join(letter if letter.isalnum() else "_" for letter in hardware.lower())


def domain_text(rule: Rule) -> str:
    """Say which calls a rule answers."""
    each = rule.domain
    queries = f"{each.min_q_len:,} to {each.max_q_len:,}" if each.min_q_len > 1 else f"up to {each.max_q_len:,}"
    return (
        f"{each.dtype} rows, forward, without a window: {queries} queries and up to {each.max_kv_len:,} keys "
        f"(as many as queries or more) of up to {each.max_batch} sequences, causal or not; up to {each.max_kv_heads} "
        f"heads of K and V with up to {each.max_group} query heads each; head dimensions "
        f"{', '.join(map(str, each.head_dims))}."
    )


def header(rule: Rule) -> Iterator[str]:
    """Yield the paragraphs of the header of a written rule."""
    engine = rule.form_of_engine
    devices = ", ".join(f"{each.hardware} ({each.implementation})" for each in rule.devices)
    yield f"{engine.chooses.format(rule.algorithm)} on {devices}."
    yield (
        f"Written by iomodel {package_version()}; do not edit. The choices are those of {engine.solver}, learned from "
        f"{rule.calls:,} calls of each device drawn with seed {rule.seed}."
    )
    yield f"Domain: {domain_text(rule)} {engine.outside}"
    yield (
        f"Regret, predicted time over that of {engine.solver} less one, on calls that served no choice; alike is the "
        f"share of calls with the choice of {engine.solver} or one within 0.5 % of its time"
        f"{', all at the tile that the library takes' if engine.value == 'x' else ''}:"
    )
    for each in rule.devices:
        own, usual = each.held_out, each.shipped
        today = f"; as the library launches today: mean {percent(usual.mean, 2)}, worst {percent(usual.worst, 2)}"
        yield (
            f"  {each.hardware}: alike {percent(own.alike, 2)} of {own.calls:,} calls, mean {percent(own.mean, 2)}, "
            f"worst {percent(own.worst, 2)}{today if usual.calls else ''}"
        )
        if each.most_splits > 1:
            half, mixed = each.shorter, each.ragged
            yield (
                f"  {each.hardware}, splits fixed for twice the keys that are there: mean {percent(half.mean, 2)}, "
                f"worst {percent(half.worst, 2)} of {half.calls} calls; sequences of different lengths: mean "
                f"{percent(mixed.mean, 2)}, worst {percent(mixed.worst, 2)} of {mixed.calls} batches"
            )
    if any(each.most_splits > 1 for each in rule.devices):
        yield (
            "Sequences of different lengths: pass the longest, and as batch the sum of all keys over the longest, "
            "rounded down. Splits fixed at graph capture: pass the most keys that the graph will see; a launch with "
            "fewer key tiles than splits takes as many as it has tiles."
        )
    if engine.constant:
        return
    yield (
        "Letters: "
        + ", ".join(f"{letter} = {meaning}" for letter, meaning in LETTERS.items())
        + ("; B and P with the rows of a tile = blocks of single heads and of packed ones.")
    )


def _wrapped(rule: Rule, prefix: str) -> Iterator[str]:
    for paragraph in header(rule):
        yield from (f"{prefix}{line}".rstrip() for line in textwrap.wrap(paragraph, WIDTH))


def _conditions(rule: Rule) -> list[tuple[str, int, int]]:
    """List the ranges of the arguments, as name, least and most."""
    each = rule.domain
    return [
        ("q_len", each.min_q_len, each.max_q_len), ("batch", 1, each.max_batch), ("kv_heads", 1, each.max_kv_heads),
    ]  # fmt: skip


def _python(rule: Rule) -> str:
    each = rule.domain
    name = name_of_function(rule)
    ranges = " and ".join(f"{least} <= {number} <= {most:_}" for number, least, most in _conditions(rule))
    engine = rule.form_of_engine
    nothing, result = engine.nothing, engine.result
    lines = ['"""', *_wrapped(rule, ""), '"""', "", ""]
    for device in rule.devices:
        lines += _python_device(device, engine.value)
    known = ", ".join(f'"{device.hardware}": _{identifier(device.hardware)}' for device in rule.devices)
    lines += [
        f"_DEVICES = {{{known}}}", "", "",
        f"def {name}(device, q_len, kv_len, batch, heads, kv_heads, head_dim, causal=False):",
        f'    """Return {result}, or {nothing} outside the domain."""',
        f"    if not ({ranges} and max(q_len, 64) <= kv_len <= {each.max_kv_len:_}):",
        f"        return {nothing}",
        "    g = heads // kv_heads",
        f"    if g * kv_heads != heads or not 1 <= g <= {each.max_group} or head_dim not in {_tuple(each.head_dims)}:",
        f"        return {nothing}",
        "    find = _DEVICES.get(device)",
        "    return find(q_len, kv_len, head_dim, g, q_len * g, batch * heads, batch * kv_heads, 1 if causal else 0) "
        f"if find else {nothing}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _tuple(values: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def _python_device(device: DeviceRule, value: str) -> Iterator[str]:
    name = identifier(device.hardware)
    yield f"_LAUNCHES_{name} = ("
    for launch in device.launches:
        sizes = (launch.block_q, launch.block_kv, launch.warps, launch.stages, launch.packed, launch.splits)
        yield f"    ({', '.join(map(str, sizes))}, {launch.fill * device.units}),"
    yield ")"
    yield ""
    yield ""
    yield f"def _{name}(q, k, d, g, r, n, m, c):"
    yield from (f"    {word} = {term.text}" for word, term in device.counted.items())
    yield from _nested(device, 0, 1, _python_if, "else:", "i={}")
    yield f"    u, v, w, s, p, x, f = _LAUNCHES_{name}[i]"
    if device.most_splits > 1:
        yield "    if not x:"
        yield "        x = f // (2 * (m * ((r + u - 1) // u) if p else n * ((q + u - 1) // u))) or 1"
        yield f"    t = min({device.most_splits}, (k + v - 1) // v)"
        yield "    x = x if x < t else t"
    elif "x" in value.split(", "):
        yield "    x = 1"
    yield f"    return {value}"
    yield ""
    yield ""


def _python_if(term: Term, most: int) -> str:
    return f"if {term.text}<={most}:"


def _cpp_if(term: Term, most: int) -> str:
    return f"if({term.cpp}<={most})"


def _nested(
    device: DeviceRule, place: int, depth: int, condition: Callable[[Term, int], str], otherwise: str, choice: str,
) -> Iterator[str]:  # fmt: skip
    """Yield the comparisons below a node as nested statements, indented by a space each."""
    node = device.nodes[place]
    indent = " " * (depth + 3)
    if not node.feature:
        yield indent + choice.format(node.most)
        return
    for word, next_place in ((condition(node.term, node.most), node.below), (otherwise, node.above)):
        half = device.nodes[next_place]
        if half.feature:
            yield indent + word
            yield from _nested(device, next_place, depth + 1, condition, otherwise, choice)
        else:
            yield f"{indent}{word} {choice.format(half.most)}"


def _cpp(rule: Rule) -> str:
    each = rule.domain
    name = name_of_function(rule)
    ranges = " || ".join(f"{number} < {least} || {number} > {most}" for number, least, most in _conditions(rule))
    widths = " && ".join(f"head_dim != {width}" for width in each.head_dims)
    alone = rule.form_of_engine.value == "x"
    returned, outside, first, last = (
        ("int", "0", "return ", ".splits") if alone else ("bool", "false", "launch = ", "; return true")
    )
    constants = ", ".join(f"{identifier(device.hardware).upper()} = {i}" for i, device in enumerate(rule.devices))
    lines = [
        *_wrapped(rule, "// "), "",
        f"namespace {name}_rule {{", "",
        "typedef long long ll;",
        f"enum Device {{ {constants} }};",
        "struct Launch { int block_q, block_kv, warps, stages, packed, splits; };", "",
    ]  # fmt: skip
    for device in rule.devices:
        lines += _cpp_device(device)
    lines += [
        f"// Returns {outside}{'' if alone else ', and leaves the launch as it is,'} outside the domain.",
        f"inline {returned} {name}(int device, ll q_len, ll kv_len, ll batch, ll heads, ll kv_heads, ll head_dim, bool "
        f"causal{'' if alone else ', Launch& launch'}) {{",
        f"    if ({ranges} || kv_len < q_len || kv_len < 64 || kv_len > {each.max_kv_len}) return {outside};",
        "    ll g = heads / kv_heads;",
        f"    if (g * kv_heads != heads || g < 1 || g > {each.max_group} || ({widths})) return {outside};",
        "    switch (device) {",
        *(
            f"    case {identifier(device.hardware).upper()}: {first}{identifier(device.hardware)}(q_len, kv_len, "
            f"head_dim, g, q_len * g, batch * heads, batch * kv_heads, causal){last};"
            for device in rule.devices
        ),
        "    }",
        f"    return {outside};",
        "}", "",
        f"}}  // namespace {name}_rule",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _cpp_device(device: DeviceRule) -> Iterator[str]:
    name = identifier(device.hardware)
    yield f"static const struct {{ Launch launch; int fill; }} LAUNCHES_{name}[] = {{"
    for launch in device.launches:
        sizes = (launch.block_q, launch.block_kv, launch.warps, launch.stages, int(launch.packed), launch.splits)
        yield f"    {{{{{', '.join(map(str, sizes))}}}, {launch.fill * device.units}}},"
    yield "};"
    yield f"inline Launch {name}(ll q, ll k, ll d, ll g, ll r, ll n, ll m, ll c) {{"
    yield "    (void)q, (void)k, (void)d, (void)g, (void)r, (void)n, (void)m, (void)c;"
    yield from (f"    const ll {word} = {term.cpp};" for word, term in device.counted.items())
    yield "    int i;"
    yield from _nested(device, 0, 1, _cpp_if, "else", "i={};")
    yield f"    Launch out = LAUNCHES_{name}[i].launch;"
    if device.most_splits > 1:
        yield "    ll u = out.block_q, x = out.splits;"
        yield "    ll b = out.packed ? m * ((r + u - 1) / u) : n * ((q + u - 1) / u), v = out.block_kv;"
        yield f"    if (!x) x = LAUNCHES_{name}[i].fill / (2 * b);"
        yield f"    ll t = (k + v - 1) / v; t = t < {device.most_splits} ? t : {device.most_splits};"
        yield "    out.splits = (int)(x < 1 ? 1 : x < t ? x : t);"
    else:
        yield "    out.splits = 1;"
    yield "    return out;"
    yield "}"
    yield ""


def _json(rule: Rule) -> str:
    """Write a file that AITER merges into its configs of an architecture."""
    launch = rule.devices[0].launches[0]
    sizes = {
        "BLOCK_M": launch.block_q, "BLOCK_N": launch.block_kv, "num_warps": launch.warps, "num_stages": launch.stages,
    }  # fmt: skip
    return json.dumps({"about": [*_wrapped(rule, "")], "fwd": {"default": sizes}}, indent=2) + "\n"


def _table(rule: Rule) -> str:
    return json.dumps(rule.to_dict(), indent=1) + "\n"


FORMS: Mapping[str, Callable[[Rule], str]] = {"python": _python, "cpp": _cpp, "json": _json, "table": _table}
"""Writers by the name of the form."""
