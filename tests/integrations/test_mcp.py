"""The server of tools, asked by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import iomodel
from iomodel.integrations.mcp.server import server
from iomodel.integrations.mcp.tools import TOOLS
from tests.support.inside import main

CALL = {"q_len": 512, "head_dim": 64, "heads": 4, "mask": {"left": 100, "right": 0, "align": "bottom-right"}}
W = iomodel.Attention(q_len=512, head_dim=64, heads=4, mask=iomodel.Window(left=100, right=0))
LAYER = {"rows": 512, "in_features": 256, "out_features": 384}
GPU = "a100-sxm4-80gb"
TILES = {"block_q": 64, "block_kv": 64}

STREAM = str(Path(__file__).parents[1] / "torch" / "streams" / "fused.jsonl")
QUESTIONS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "bound": (
        "bound",
        {"workload": CALL, "sram_bytes": 100_000},
        lambda: {name: each.to_dict() for name, each in iomodel.lower_bounds(W, sram_bytes=100_000).items()},
    ),
    "best tile": (
        "best_tile",
        {"algorithm": "flash2", "workload": CALL, "hardware": GPU, "objective": "traffic"},
        lambda: iomodel.solve("flash2", W, GPU, objective="traffic").to_dict(),
    ),
    "best tile of a product": (
        "best_tile",
        {"algorithm": "gemm", "workload": LAYER, "hardware": GPU},
        lambda: iomodel.solve("gemm", iomodel.Linear(**LAYER), GPU).to_dict(),
    ),
    "what binds": (
        "what_binds",
        {"algorithm": "flash2", "workload": CALL, "hardware": GPU, "tiles": TILES},
        lambda: iomodel.estimate("flash2", W, GPU, TILES).to_dict(),
    ),
    "gap": (
        "gap",
        {"algorithm": "flash2", "workload": CALL, "hardware": GPU, "seconds": 1e-4, "tiles": TILES},
        lambda: iomodel.diagnose("flash2", W, GPU, 1e-4, TILES).to_dict(),
    ),
    "bound of a program": (
        "program_bound",
        {"stream": STREAM, "hardware": GPU, "seconds": 1e-9},
        lambda: iomodel.torch.traffic(iomodel.torch.read_calls(STREAM), GPU).gap(1e-9).to_dict(),
    ),
    "traffic": (
        "traffic",
        {"algorithm": "flash2", "workload": CALL, "tiles": TILES},
        lambda: iomodel.cost("flash2", W, TILES).to_dict(),
    ),
    "names": (
        "names",
        {},
        lambda: {"algorithms": iomodel.list_algorithms(), "hardware": iomodel.list_hardware()},
    ),
}
REFUSED = {
    "algorithm: 'flash9' is unknown; did you mean": ("traffic", {"algorithm": "flash9", "workload": CALL}),
    "workload: {'rows': 3} given; allowed: the fields of a workload, one of q_len": (
        "bound",
        {"workload": {"rows": 3}, "sram_bytes": 1000},
    ),
    "head_dim: not given, but required": ("bound", {"workload": {"q_len": 3}, "sram_bytes": 1000}),
}


async def answers(
    target: Any, questions: Any = QUESTIONS
) -> tuple[dict[str, Any], dict[str, tuple[bool, str]], dict[str, Any]]:
    """Ask a server in one session."""
    async with Client(target) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        told = {name: await client.call_tool(tool, arguments) for name, (tool, arguments, _) in questions.items()}
        refused = {line: await client.call_tool(tool, arguments) for line, (tool, arguments) in REFUSED.items()}
    lines = {line: (result.is_error, result.content[0].text) for line, result in refused.items()}
    return told, lines, tools


def check(told: dict[str, Any], lines: dict[str, tuple[bool, str]]) -> None:
    for name, answer in told.items():
        expected = json.loads(json.dumps(QUESTIONS[name][2]()))
        assert not answer.is_error, answer.content
        assert answer.structured_content == expected, name
        assert json.loads(answer.content[0].text) == expected, name
    for line, (is_error, text) in lines.items():
        assert is_error
        assert line in text
        assert "\n" not in text


def test_every_answer_is_that_of_the_public_function() -> None:
    told, lines, tools = asyncio.run(answers(server()))
    check(told, lines)
    assert tools.keys() == TOOLS.keys() == {tool for tool, _, _ in QUESTIONS.values()}
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["type"] == "object"


def test_the_command_serves_on_the_standard_streams() -> None:
    command = StdioServerParameters(command=sys.executable, args=["-m", "iomodel", "mcp"])
    few = {name: QUESTIONS[name] for name in ("bound", "traffic", "names")}
    told, lines, _ = asyncio.run(answers(command, few))
    assert told.keys() == few.keys()
    check(told, lines)


def test_without_the_sdk_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert main(["mcp"]) == 2
    assert capsys.readouterr().err.endswith("not installed; pip install 'iomodel[mcp]'\n")
