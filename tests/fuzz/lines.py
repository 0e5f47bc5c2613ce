"""Command lines: the example of each command, with options changed, left out, doubled and put in."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import typer.main

import iomodel
from iomodel.cli.app import app
from tests.fuzz.files import PLANS
from tests.fuzz.law import Case, exit_of
from tests.fuzz.texts import TEXTS, as_yaml, scribble

NEVER = {"--workers", "--serve"}
"""Options that start processes, or a server that runs until it is stopped."""


CHOICES: dict[str, tuple[str, ...]] = {
    "mask": ("full", "causal", "window", "documents", "blocks"),
    "direction": ("forward", "backward", "both"),
    "dtype": ("bf16", "fp16", "fp8"),
    "kv_dtype": ("bf16", "fp8"),
    "over": ("length", "sram_elements", "head_dim", "batch"),
    "metric": ("bytes", "flops", "time"),
    "objective": ("traffic", "time"),
    "hardware": ("h100-sxm5", "a100-sxm4-80gb", "sim-a100"),
    "model": ("llama-3-8b", "gpt-oss-20b"),
    "sram_bytes": ("5000", "20000", "200000"),
    "sram_elements": ("2000", "20000", "100000"),
    "limit": ("50", "500"),
    "epsilon": ("0", "0.1"),
}
"""Right values of options."""


class Command(NamedTuple):
    """A command: its words, its example as words, the options that take a value, those that take none."""

    words: tuple[str, ...]
    example: tuple[str, ...]
    valued: tuple[str, ...]
    switches: tuple[str, ...]


@cache
def commands() -> tuple[Command, ...]:
    """Every command there is, new ones among them, but the server that reads its input until it ends."""
    return tuple(command for command in _below(typer.main.get_command(app), ()) if command.words != ("mcp",))


def _below(found: Any, words: tuple[str, ...]) -> list[Command]:
    if hasattr(found, "commands"):
        return [command for name, one in found.commands.items() for command in _below(one, (*words, name))]
    valued, switches = [], []
    for parameter in found.params:
        names = [*parameter.opts, *parameter.secondary_opts]
        if names[0].startswith("-"):
            (switches if parameter.is_flag else valued).extend(names)
    example = re.search(r"^ *iomodel (.*)$", found.help or "", re.MULTILINE)
    typed = shlex.split(example[1]) if example else list(words)
    return [Command(words, tuple(typed), tuple(valued), tuple(switches))]


def line(rng: Random) -> Case:
    """A command line."""
    command = rng.choice(commands())
    if {"plot", "fleet", "simulate"} & {*command.words}:  # these take long
        command = rng.choice(commands())
    words = [*command.example]
    Path("plan.yaml").write_text(as_yaml(rng.choice(PLANS)), encoding="utf-8")
    if "sweep" in words[:1] and rng.random() < 0.8:
        words = [*words[:2], "--dry-run"]
    for _ in range(rng.choices((0, 1, 2, 4), (12, 50, 25, 13))[0]):
        words = _changed(words, command, rng)
    if rng.random() < 0.15:
        words.append("--json")
    if "explore" in words:  # a page takes longer than an input may
        words += ["--algorithms", "none"]
    if "--output" in words and rng.random() < 0.97:  # a picture takes long
        words += ["--output", rng.choice(("x.gif", "", "no/x.png", "."))]
    words = [word.replace("\0", "") if rng.random() < 0.9 else word for word in words]
    return Case("command lines", f"iomodel {' '.join(map(ascii, words))}", lambda: exit_of(words))


def _changed(words: list[str], command: Command, rng: Random) -> list[str]:
    made, kind = list(words), rng.random()
    options = [place for place, word in enumerate(made) if word.startswith("--")]
    if kind < 0.35 and options:
        place = rng.choice(options) + 1
        if place < len(made):
            made[place] = _value(made[place - 1], rng)
    elif kind < 0.65:
        added = _one_more(command, rng)
        made[len(made) :] = added
    elif kind < 0.75 and made:
        del made[rng.randrange(len(made))]
    elif kind < 0.8 and options:
        place = rng.choice(options)
        made += made[place : place + 2]
    elif kind < 0.84:
        rng.shuffle(made)
    elif kind < 0.9:
        made.insert(rng.randrange(len(made) + 1), _typed(rng.choice(TEXTS), rng))
    elif kind < 0.94 and made:
        place = rng.randrange(len(made))
        made[place] = _typed(made[place], rng)
    else:
        other = rng.choice(commands())
        made += _one_more(other, rng)
    return [word for word in made if word not in NEVER]


def _one_more(command: Command, rng: Random) -> list[str]:
    if command.switches and rng.random() < 0.3:
        return [rng.choice(command.switches)]
    if not command.valued:
        return [scribble(rng)]
    option = rng.choice(command.valued)
    value = _value(option, rng)
    return [f"{option}={value}"] if rng.random() < 0.2 else [option, value]


def _value(option: str, rng: Random) -> str:
    """A value of an option: mostly a right one."""
    name = option.lstrip("-").replace("-", "_")
    kind = rng.random()
    if kind < 0.25:
        return rng.choice(TEXTS) if rng.random() < 0.8 else scribble(rng)
    if kind < 0.35:
        return rng.choice(
            (
                "0",
                "-1",
                "1",
                "7",
                "1000000",
                "9" * 19,
                "1" + "0" * 400,
                "1.5",
                "nan",
                "1e3",
                "8k",
                "1,2",
                "1 2,3 4",
                "@x",
            )
        )
    if name in CHOICES and kind < 0.9:
        return rng.choice(CHOICES[name])
    return rng.choice(
        (
            str(rng.choice((1, 2, 3, 8, 13, 16, 64))),
            rng.choice(iomodel.list_hardware()),
            "causal",
            "bf16",
            "8,8",
            "16 KiB",
            "3ms",
            "plan.yaml",
        )
    )


def _typed(word: str, rng: Random) -> str:
    place = rng.randrange(len(word) + 1)
    return rng.choice(
        (word[:-1], word.upper(), f"{word}=", word[:place] + scribble(rng, 3) + word[place:], f"-{word}", word * 2)
    )
