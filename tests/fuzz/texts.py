"""Files that are nearly right: their text changed, or what they hold, or what they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\0",
    "\n",
    "a\nb",
    "\r",
    "\x1b[31mred\x1b[0m",
    "\x07",
    "\x7f",
    "\x85",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\ud800",
    "🙂",
    "٣",
    "½",
    "é" * 300,
    "a" * 20_000,
    "{0}",
    "{}",
    "{",
    "%s",
    "%(x)d",
    "[bold]",
    "[/]",
    "[red",
    "$HOME",
    "`id`",
    *("nan", "inf", "1e999", "-1", "0x10", "1_000", "8k", "None", "true", "null", "0", "1", "3.5"),
    "flash2 ",
    "FLASH2",
    "flash",
    "caus\u0430l",
    "../..",
    "/",
    ".",
    "..",
    "~",
    "/dev/null",
    "/dev/zero",
    "./no.yaml",
    "x\0.yaml",
    "a/" * 3000 + "x.yaml",
    "C:\\x.yaml",
    "x.npy",
    "@",
    "@/dev/null",
    "-",
    "--",
    "--help",
    "=",
    ",",
    "1,,2",
    ";",
    "'",
    '"',
    *("__class__", "__import__('os').system('false')", "lambda: 0", "10**10**10", "q_len", "block_q", "causal", "full"),
)

SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 16, 10**9, 10**18, 10**19, 10**39, 10**41, 0.5, -0.5, 1e-300, 1e300, 2**63),
    float("nan"),
    float("inf"),
    -float("inf"),
    "",
    " ",
    "x",
    "1",
    "1e999",
    "228 KiB",
    "3.35 TB/s",
    "0 B",
    "1 YB",
    "-1 GB",
    "1 ghz",
    "auto",
    "bf16",
    "fp8",
    "silu",
    "causal",
    "\u2028",
    "\x1b[0m",
    "a\nb",
    "é" * 600,
    "🙂",
    [],
    {},
    [[]],
    [None],
    {"value": 1},
    {"value": "1 KiB", "unit": "KiB"},
    {"value": 1, "unit": []},
    {"from": 1, "to": 10**12, "step": 1},
    {"from": 1, "to": 4, "factor": 2},
    {"from": 1, "to": 10**18, "step": 1, "factor": 2},
    {"from": 9, "to": 1, "step": 1},
    list(range(300)),
    ["sliding_attention"] * 3,
)
SNIPPETS = (
    "!!python/object/apply:os.system [true]",
    "!!python/name:os.system",
    "!x y",
    "&a [1]",
    "*a",
    "<<: *a",
    "? [a]\n: b",
    "- - - 1",
    "a: &x [&y [&z [1]]]\nb: [*x, *x, *x]",
    "---",
    "...",
    "%YAML 9.9",
    "%TAG ! tag:x,2000:",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "[[[[[[[[[[[[[[[[[[[[1",
    "{a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: {n: {o: {p: {q: 1",
    "|\n",
    ">\n  ",
    "'",
    '"',
    '"\\x',
    '"\\UFFFFFFFF"',
    "#",
    ": ",
    ",",
    "\0",
    "schema: 1",
    "schema: 2",
    "name: again",
    "<<: {a: 1}",
    "=: 1",
    "1: 2",
    "~: 1",
    "true: 1",
    "0x10",
    "0o7",
    "1:30",
    "1_000",
    "2001-01-01",
    "9" * 50,
    "9" * 5000,
    ".nan",
    "-.inf",
    "1e400",
    "yes",
    "no",
    "\ufeff",
    "\u0085",
    "\ud7ff",
    "NaN",
    "Infinity",
    "-Infinity",
    "//",
    "/* */",
)


def text_changed(content: bytes, rng: Random) -> bytes:
    """Some bytes, lines or snippets of a text put in, taken out or doubled."""
    kind = rng.random()
    if kind < 0.25 and content:
        made = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 5, 40))):
            made[rng.randrange(len(made))] = rng.randrange(256)
        return bytes(made)
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    if kind < 0.5:
        lines.insert(place, rng.choice(SNIPPETS).encode("utf-8", "surrogatepass"))
    elif kind < 0.62:
        del lines[place : place + rng.choice((1, 1, 3, 20))]
    elif kind < 0.72:
        lines.insert(rng.randrange(len(lines)), lines[place])
    elif kind < 0.86:
        line = lines[place]
        cut = rng.randrange(len(line) + 1)
        piece = rng.choice((rng.choice(SNIPPETS), scribble(rng))).encode("utf-8", "surrogatepass")
        lines[place] = line[:cut] + piece + line[cut + rng.randrange(4) :]
    elif kind < 0.92:
        return content[: rng.randrange(len(content) + 1)]
    else:
        lines[place] = b" " * rng.randrange(4) + lines[place].lstrip()
    return b"\n".join(lines)


def hostile(rng: Random) -> bytes:
    """A file that never was right."""
    return rng.choice(
        (
            b"",
            b"\n",
            b"\0",
            b"\xff\xfe",
            b"\xef\xbb\xbf",
            b"\xff" * 100,
            "schema: 1\nname: é".encode("utf-16"),
            "é: 1".encode("latin-1"),
            b"[" * 5000,
            b"{" * 5000,
            b"a: " * 50,
            b"- " * 5000,
            b"a:\n" + b" " * 5000 + b"b",
            b"{}",
            b"[]",
            b"null",
            b"1",
            b'"x"',
            b"a: &a [" + b"1," * 20 + b"]\n" + b"b: [*a,*a]\n" * 10,
            b"x: " + b"9" * 100_000,
            b"? " * 3000,
            b'{"a":' * 5000,
            b"[" * 100_000,
            b"{" * 100_000,
            b'{"a":' * 100_000,
            b"[" * 100_000 + b"]" * 100_000,
            b"- " * 100_000,
            b"a0: &a0 [1,1,1,1,1,1,1,1]\n"
            + b"".join(b"a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n" % (i, i, *[i - 1] * 6) for i in range(1, 12)),
            b"schema: 1\nschema: 1\nname: x\nname: y\n",
            b'{"model_type": "llama", "model_type": "gpt2", "hidden_size": NaN, "vocab_size": Infinity}',
            b"[" + b"1," * 20_000 + b"1]",
            b'{"a": 1, "a": 2}',
            b'{"model_type": NaN}',
            b'{"model_type": "llama", "hidden_size": 1e400}',
            bytes(rng.randrange(256) for _ in range(rng.randrange(200))),
        )
    )


def tree_changed(data: Any, rng: Random) -> Any:
    """What a file holds with one entry somewhere changed, taken out, renamed or put in."""
    if not isinstance(data, dict | list) or not data or rng.random() < 0.12:
        return (
            rng.choice(SCALARS)
            if rng.random() < 0.8 or not isinstance(data, int | float)
            else data * rng.choice((-1, 0, 2, 3, 1000, 0.5, 10**20))
        )
    if isinstance(data, list):
        made, place = list(data), rng.randrange(len(data))
        if rng.random() < 0.75:
            made[place] = tree_changed(made[place], rng)
        else:
            made = made[:place] + [rng.choice(SCALARS)] * rng.randrange(3) + made[place + 1 :]
        return made
    made = dict(data)
    name = rng.choice(list(made))
    kind = rng.random()
    if kind < 0.7:
        made[name] = tree_changed(made[name], rng)
    elif kind < 0.8:
        del made[name]
    elif kind < 0.9:
        made[rng.choice((name[:-1], name.upper(), scribble(rng), "value"))] = made.pop(name)
    else:
        made[rng.choice((scribble(rng), "self", "extra", "__class__"))] = rng.choice(SCALARS)
    return made


@cache
def held_by(content: bytes) -> Any:
    """What a right file holds; JSON is YAML."""
    return yaml.load(content, Loader=LOADER)


def nearly(content: bytes, rng: Random, write: Callable[[Any], str]) -> bytes:
    """A file near a right one."""
    kind = rng.random()
    if kind < 0.03:
        return content
    if kind < 0.09:
        return hostile(rng)
    if kind < 0.4:
        for _ in range(rng.choice((1, 1, 2, 3))):
            content = text_changed(content, rng)
        return content
    data = held_by(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = tree_changed(data, rng)
    return write(data).encode("utf-8", "surrogatepass")


def as_yaml(data: Any) -> str:
    try:
        return yaml.dump(data, Dumper=DUMPER, sort_keys=False, allow_unicode=True)
    except UnicodeEncodeError:  # half a character
        return yaml.safe_dump(data, sort_keys=False)


def as_json(data: Any) -> str:
    return json.dumps(data)


def scribble(rng: Random, most: int = 12) -> str:
    """A text of any characters."""
    ranges = ((32, 126), (0, 31), (160, 0x24F), (0x4E00, 0x4E80), (0x1F600, 0x1F640), (0xD800, 0xDFFF))
    weights = (12, 2, 2, 1, 1, 1)
    spans = rng.choices(ranges, weights, k=rng.randint(0, most))
    return "".join(chr(rng.randint(*span)) for span in spans)
