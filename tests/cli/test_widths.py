"""Output on terminals of 60, 80 and 120 columns: no line is too long, and no number and no name is broken."""

import re
import shlex

import pytest

from iomodel.cli.app import main
from iomodel.cli.commands import COMMANDS

pytestmark = pytest.mark.usefixtures("plain_terminal")
SHAPE = "--q-len 8192 --head-dim 128 --heads 32 --kv-heads 8 --mask causal"
RULES = re.compile("[─-╿]+")
TABLES = [
    "algorithms",
    "hardware",
    "hardware h100-sxm5",
    "hardware mi300x",
    "model",
    "model deepseek-v3",
    f"tiles flash3 --hardware h100-sxm5 {SHAPE}",
    f"tiles flash2 --hardware b200 {SHAPE} --top 3",
    "tiles gemm --hardware h100-sxm5 --rows 4096 --in-features 4096 --out-features 4096",
    "tiles dsa --hardware h100-sxm5 --q-len 4096 --kv-len 16384 --head-dim 128",
    f"check flash3 --hardware h100-sxm5 {SHAPE} --block-q 128 --block-kv 128",
    f"cost flash2 {SHAPE} --block-q 128 --block-kv 64",
    f"estimate eager --hardware h100-sxm5 {SHAPE}",
    f"estimate flash2 --hardware h100-sxm5 {SHAPE} --direction backward",
    f"compare --hardware h100-sxm5 {SHAPE}",
    "compare --sram-elements 100000 --q-len 8192 --head-dim 128 --heads 32 --kv-heads 8",
    "staircase flash2 --q-len 8192 --head-dim 64 --alignment 16",
    "crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64",
    "diagnose flash2 --time 2ms --hardware h100-sxm5 --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64",
    "plan llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2.5",
    "step llama-3-8b --hardware h100-sxm5 --batch 64 --kv-len 4096",
    "bounds flash2 --q-len 8192 --head-dim 128 --sram-elements 51200",
    "fleet llama-3-8b --load 20 --prompt 2048 --output 256 --ttft 0.5 --tpot 0.05 --hardware h100-sxm5",
    "pareto llama-3-8b --hardware h100-sxm5 --prompt 1024 --output 128 --max-count 1 --tpot 20ms",
    "disaggregate llama-3-8b --prefill h100-sxm5 --decode h200-sxm --link 50e9 --prompt 2048 --output 256",
    "trace flash2 --hardware sim-a100 --q-len 256 --head-dim 64 --block-q 64 --block-kv 64",
    "train llama-3-8b --hardware h100-sxm5 --batch 64 --seq-len 4096 --data-parallel 8 --recompute full",
    "simulate llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --load 4 --policy chunked",
]
HELP = ["--help", *(f"{name} --help" for name in COMMANDS), "tiles flash3 --help", "estimate flash2 --help"]


def words(text):
    """Split a page into numbers and names, without rules and the punctuation of lists."""
    return {word.strip(",:") for word in RULES.sub(" ", text).split()}


@pytest.mark.parametrize("line", [*TABLES, *HELP])
def test_no_number_and_no_name_is_broken(line, capsys, monkeypatch):
    def page(width):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(shlex.split(line)) == 0
        return capsys.readouterr().out

    wide = page(400)
    assert "\\[" not in wide  # markup of the terminal that nothing interprets
    whole = words(wide) | words("left out at this width")
    for width in (60, 80, 120):
        narrow = page(width)
        assert words(narrow) <= whole
        assert max(map(len, narrow.splitlines())) <= width


@pytest.mark.parametrize("command", ["fleet", "pareto", "disaggregate", "staircase"])
def test_options_stand_beside_each_other_at_80_columns(command, capsys, monkeypatch):
    (line,) = (line for line in TABLES if line.split()[0] == command)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(shlex.split(line)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert RULES.search("".join(lines[3:6]))  # the rule below the names of the columns
