"""Descriptions of Triton kernels read from TTIR: against declarations, and texts that are cut, altered or foreign."""

from __future__ import annotations

import gzip
import json
import random
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel.errors import InputError
from iomodel.placement.triton_check import check_triton, checked_kernel
from iomodel.placement.triton_description import KernelDescription, describe
from iomodel.placement.triton_target import SHARED_LIMITS
from iomodel.triton import pruner
from tests.placement.test_triton_compiles import kernel as declared

FILE = Path(__file__).parents[1] / "measured" / "triton" / "own_ttir.jsonl.gz"
Text = dict[str, Any]
TEXTS: list[Text] = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
PRODUCT = next(text for text in TEXTS if text["kernel"] == "matmul")
FORWARD = next(text for text in TEXTS if text["kernel"] == "forward")


@cache
def described(index: int) -> KernelDescription:
    return describe(TEXTS[index]["ttir"], TEXTS[index]["config"])


def read(text: str, config: dict[str, int] | None = None) -> KernelDescription:
    return describe(text, config or PRODUCT["config"])


# --- a described kernel is the declared one


@given(
    index=st.integers(0, len(TEXTS) - 1),
    rows=st.sampled_from([16, 32, 64, 128, 256]),
    keys=st.sampled_from([16, 32, 64, 128, 256]),
    width=st.sampled_from([32, 64, 128, 256]),
    warps=st.sampled_from([1, 2, 4, 8]),
    stages=st.integers(1, 5),
    arch=st.sampled_from(sorted(SHARED_LIMITS)),
)
def test_a_described_kernel_is_checked_as_the_declared_one(
    index: int, rows: int, keys: int, width: int, warps: int, stages: int, arch: int
) -> None:
    """From one text, for any config and architecture: the same bytes, columns, instruction and verdict."""
    text = TEXTS[index]
    row = {**text, "M": rows, "N": keys, "d": width, "warps": warps, "stages": stages, "arch": arch}
    mine = described(index).kernel({"M": rows, "N": keys, "D": width})
    assert checked_kernel(mine, arch, warps, stages) == checked_kernel(declared(row), arch, warps, stages)


def test_a_description_is_plain_data() -> None:
    for index in range(len(TEXTS)):
        assert KernelDescription.from_json(described(index).to_json()) == described(index)


def test_names_and_fixed_extents_are_told() -> None:
    latent = next(i for i, text in enumerate(TEXTS) if text["kernel"] == "mla_decode")
    assert set(described(latent).names) == {"M", "N", "D"}
    assert described(latent).fixed == (64,)  # the rotary columns


def test_a_config_without_a_name_keeps_that_of_the_text() -> None:
    product = read(PRODUCT["ttir"])
    assert product.kernel({"M": 64}) == product.kernel({**PRODUCT["config"], "M": 64})
    assert product.kernel({"m": 64}) == product.kernel({"M": 64})


# --- which extent is which


def test_two_extents_of_one_size_are_refused() -> None:
    """A text in which BLOCK_N might be the width of the heads cannot tell the two apart."""
    text = FORWARD["ttir"].replace("128x", "32x").replace("<128x", "<32x").replace("end = 128", "end = 32")
    with pytest.raises(InputError, match=r"^config: D is 32, and so is another extent"):
        read(text, {"D": 32})
    with pytest.raises(InputError, match=r"^config: D and E are both 32; give"):
        read(FORWARD["ttir"], {"D": 32, "E": 32})


SQUARE = """
tt.func public @square(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %g: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
%zero = arith.constant dense<0.0> : tensor<64x64xf32>
%ap = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
%bp = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
%gp = tt.splat %g : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
%x = tt.load %ap : tensor<64x32x!tt.ptr<f16>>
%y = tt.load %bp : tensor<32x64x!tt.ptr<f16>>
%z = tt.load %gp : tensor<64x!tt.ptr<f32>>
%s = tt.dot %x, %y, %zero : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
%r = tt.expand_dims %z {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
%rows = tt.broadcast %r : tensor<64x1xf32> -> tensor<64x64xf32>
%c = tt.expand_dims %z {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
%columns = tt.broadcast %c : tensor<1x64xf32> -> tensor<64x64xf32>
%gated = arith.mulf %s, %rows : tensor<64x64xf32>
%both = arith.mulf %gated, %columns : tensor<64x64xf32>
tt.return
}"""
"""A square product, off a loop; both of its sides are multiplied by one vector."""


def test_operations_on_loaded_tiles_tell_that_two_sides_are_one_extent() -> None:
    """One vector along both sides makes them one; without it the two may differ in another config."""
    kernel = read(SQUARE, {"BT": 64}).kernel({"BT": 128})
    assert (kernel.products[0].rows, kernel.products[0].columns, kernel.looped) == (128, 128, False)
    with pytest.raises(InputError, match=r"^config: BT is 64, and so is another extent"):
        read(SQUARE.replace("%gated, %columns", "%gated, %rows"), {"BT": 64})


def test_a_tile_that_no_extent_has_is_refused() -> None:
    with pytest.raises(InputError, match=r"^config: N is 16, and no tile has that extent"):
        read(PRODUCT["ttir"], {"M": 128, "D": 32, "N": 16})
    assert read(PRODUCT["ttir"], {"M": 128, "N": 64, "GROUP": 8}).fixed == (32,)


def test_two_texts_tell_a_multiple() -> None:
    """A tile that is half of a constant, as of a gated product, is read from two texts."""
    wide = PRODUCT["ttir"].replace("64x32", "128x32").replace("32x64", "32x128").replace("128x64", "128x128")
    wide = wide.replace("<64x", "<128x").replace("end = 64", "end = 128")
    configs = [{"M": 128, "BN": 128, "D": 32}, {"M": 128, "BN": 256, "D": 32}]
    halved = describe([PRODUCT["ttir"], wide], configs)
    assert halved.kernel({"BN": 512}) == read(PRODUCT["ttir"]).kernel({"N": 256})
    with pytest.raises(InputError, match=r"^config: 1 given for 2 texts"):
        describe([PRODUCT["ttir"], wide], configs[:1])
    with pytest.raises(InputError, match=r"^text: kernels whose loops differ"):
        describe([PRODUCT["ttir"], FORWARD["ttir"]], configs)


# --- texts that are cut, altered or foreign


@given(index=st.integers(0, len(TEXTS) - 1), share=st.floats(0, 1, exclude_max=True))
def test_a_cut_text_ends_in_one_line(index: int, share: float) -> None:
    text = TEXTS[index]["ttir"].rstrip("}\n ")
    with pytest.raises(InputError) as error:
        describe(text[: int(share * len(text))], TEXTS[index]["config"])
    assert "\n" not in str(error.value)


@given(index=st.integers(0, len(TEXTS) - 1), seed=st.integers(0, 10**6))
def test_an_altered_text_is_described_or_refused(index: int, seed: int) -> None:
    rng = random.Random(seed)
    lines = TEXTS[index]["ttir"].split("\n")
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                del lines[place]
            case 1:
                lines.insert(rng.randrange(len(lines)), lines[place])
            case 2:
                at = rng.randrange(len(lines[place]) + 1)
                lines[place] = lines[place][:at] + rng.choice("%#{}()<>x:,0 ") + lines[place][at + 1 :]
            case _:
                lines[place] = lines[place].replace("64", rng.choice(["0", "63", "9" * 30, "1"]))
    words = ""
    try:
        product = describe("\n".join(lines), TEXTS[index]["config"])
        checked_kernel(product.kernel({}), 90, 4, 3)
    except InputError as error:
        words = str(error)
    assert "\n" not in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "allowed: the TTIR of a kernel"),
        ("// Generated by LLVM NVPTX Back-End\n.version 8.7", "allowed: the TTIR of a kernel"),
        (PRODUCT["ttir"].replace("tensor<128x64xf32>", "tensor<128x64xf32, #mma>"), "a later level of the compiler"),
        (PRODUCT["ttir"].replace("tt.dot ", "tt.dot_scaled "), "tt.dot_scaled"),
        (PRODUCT["ttir"].replace("tt.dot ", "arith.addf "), "without tt.dot"),
        (PRODUCT["ttir"].replace("128x64xf32", "96x64xf32"), "no powers of two"),
        (PRODUCT["ttir"].replace("32x64x!tt.ptr<f16>>", "16x64x!tt.ptr<f16>>"), "tiles that do not match"),
        ("tt.func " * 400_000, "at most 2,000,000"),
        ("tt.func public @f(%a: i32) {\n" + "scf.if %a {\n" * 100, "is within 64 regions"),
        ("tt.func public @f(%a: i32) {\n" + "%" * 20_000, "has 20,000 characters"),
    ],
)
def test_a_foreign_text_is_refused_at_once(text: str, words: str) -> None:
    began = time.perf_counter()
    with pytest.raises(InputError, match=words) as error:
        read(text)
    assert "\n" not in str(error.value)
    assert time.perf_counter() - began < 2


# --- in place of a name


def test_check_and_pruner_take_a_description() -> None:
    product = read(PRODUCT["ttir"])
    named = check_triton(128, 64, 32, kernel="matmul", arch=80, warps=8, stages=3, version="3.9.0")
    config = {"M": 128, "N": 64, "D": 32, "num_warps": 8, "num_stages": 3}
    assert check_triton(config, kernel=product, arch=80, version="3.9.0") == named
    listed = [{"M": 128, "N": n, "D": 64, "GROUP": 4, "num_warps": 8, "num_stages": 5} for n in (64, 96, 128, 256)]
    cut = pruner(None, "a100-sxm4-80gb", kernel=product, version="3.9.0").pruned(listed)
    assert [each["N"] for each in cut.kept] == [64, 128, 96]
    assert (cut.too_large, cut.unread) == (1, ("GROUP",))
    assert dict(cut.unjudged) == {"N: 96 given; allowed: a power of two": 1}


def test_a_config_without_a_tile_of_the_description_is_kept_unjudged() -> None:
    """A list in other names is not judged as if it were the config of the text."""
    keep = pruner(None, "a100-sxm4-80gb", kernel=read(PRODUCT["ttir"]), version="3.9.0")
    cut = keep.pruned([{"BLOCK_M": 256, "num_stages": 9}])
    assert (len(cut.kept), sum(cut.unjudged.values())) == (1, 1)
    assert next(iter(cut.unjudged)).endswith("allowed: a config with M, D, N")


def test_arguments_of_named_kernels_are_refused_with_a_description() -> None:
    product = read(PRODUCT["ttir"])
    with pytest.raises(InputError, match=r"^N: 64 given for a described kernel; allowed: its config alone"):
        check_triton({"M": 128}, 64, kernel=product, arch=80, version="3.9.0")
    with pytest.raises(InputError, match=r"^num_warps: 3 given; allowed: a power of two"):
        check_triton({"num_warps": 3}, kernel=product, arch=80, version="3.9.0")
    with pytest.raises(
        InputError, match=r"^M: 128 given; allowed: a mapping, such as a config of the described kernel"
    ):
        check_triton(128, kernel=product, arch=80, version="3.9.0")
    with pytest.raises(InputError, match=r"^top: 8 given; allowed: None"):
        pruner(None, "a100-sxm4-80gb", kernel=product, top=8)
