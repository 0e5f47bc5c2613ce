"""A user's hardware file: what it may say, and that everything else ends as one line of SpecError."""

import os
import pickle

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from iomodel import InputError, UnknownNameError
from iomodel.devices.device import Hardware, hardware, list_hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import SpecError
from tests.support.inside import LARGEST_FILE, AmbiguousNameError, UnitKind, dump, parse

LEAST = "schema: 1\nname: mine\nmemory: {sram: {per_block: 228 KiB}}\n"


@pytest.fixture
def load(tmp_path):
    def load(content):
        path = tmp_path / "mine.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return hardware(path)

    return load


def sram(value):
    return f"schema: 1\nname: mine\nmemory: {{sram: {{per_block: {value}}}}}\n"


def test_the_least_file(load, tmp_path):
    device = load(LEAST)
    assert device.sram_per_block == 233472
    assert device.memory.sram.per_block == Quantity(value=233472, unit="B", source="user file")
    assert device.memory.sram.per_block.verified
    assert device.memory.hbm.bandwidth is None
    assert device.tile_alignment == 16
    assert hardware(str(tmp_path / "mine.yaml")) == device


def test_a_path_without_a_folder_is_known_by_its_ending(load, tmp_path, monkeypatch):
    load(LEAST)
    monkeypatch.chdir(tmp_path)
    assert hardware("mine.yaml").name == hardware(f".{os.sep}mine.yaml").name == "mine"


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("memory.hbm.bandwidth", "3.35 TB/s", 3350000000000),
        ("memory.hbm.bandwidth", "3350GB/s", 3350000000000),
        ("memory.hbm.bandwidth", "3.35e12", 3350000000000),
        ("memory.hbm.bandwidth", "{value: 3.35, unit: TB/s}", 3350000000000),
        ("memory.hbm.bandwidth", "{value: 3.35 TB/s, source: data sheet}", 3350000000000),
        ("memory.hbm.capacity", "80 GiB", 80 * 2**30),
        ("memory.hbm.capacity", "80 GB", 80 * 10**9),
        ("memory.hbm.capacity", "1e9", 10**9),
        ("memory.l2.capacity", "0.5 MiB", 2**19),
        ("compute.peak.bf16", "989.4 TFLOP/s", 989400000000000),
        ("compute.peak.int8", "1.9789 POP/s", 1978900000000000),
        ("compute.clock.boost", "1.83 GHz", 1830000000),
        ("compute.units", "132", 132),
        ("power.tdp", "0.7 kW", 700),
        ("measured.l2_latency", "146 ns", 1.46e-7),
        ("measured.kernel_launch", "2.5 µs", 2.5e-6),
        ("interconnect.total", "0", 0),
    ],
)
def test_units_are_exact(load, field, text, value):
    *groups, last = field.split(".")
    nested = "".join(f"{{{group}: " for group in groups[1:]) + f"{{{last}: {text}}}" + "}" * (len(groups) - 1)
    if groups[0] != "memory":
        found = load(f"{LEAST}{groups[0]}: {nested}\n")
    else:
        found = load(f"{LEAST[:-1].rstrip('}')}}}, {nested[1:]}\n")
    assert found.quantities[field].value == value
    assert type(found.quantities[field].value) is type(value)


@pytest.mark.parametrize("unit", ["B/s", "MB/s", "GB/s", "GiB/s", "TB/s"])
def test_each_number_of_a_figure_has_its_unit(load, unit):
    """The figure, the ends of its spread, and those of other sources; or a unit of its own behind each."""
    value, low, high, other = (size * 10**9 if unit == "B/s" else size for size in (5, 4, 6, 7))
    once = f"value: {value}, unit: {unit}, spread: [{low}, {high}], alternatives: [{{value: {other}}}]"
    each = f"value: {value} {unit}, spread: [{low} {unit}, {high} {unit}], alternatives: [{{value: {other} {unit}}}]"
    found = [load(f"{LEAST[:-2]}, hbm: {{bandwidth: {{{text}}}}}}}\n").memory.hbm.bandwidth for text in (once, each)]
    assert found[0] == found[1]
    assert [*found[0].spread, found[0].alternatives[0].value] == pytest.approx(
        [size / value * found[0].value for size in (low, high, other)]
    )


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (sram("3 GHz"), ["memory.sram.per_block", "'GHz'", "KiB"]),
        (sram("228 gb"), ["memory.sram.per_block", "did you mean 'GB'?"]),
        (sram("228 Gb"), ["memory.sram.per_block", "did you mean 'GB'?"]),
        (sram("228 KB"), ["memory.sram.per_block", "did you mean 'KiB'?"]),
        (sram("-1"), ["memory.sram.per_block", "from 1 B to 1 GiB", "given -1 B"]),
        (sram("0"), ["memory.sram.per_block", "given 0 B"]),
        (sram("2 GiB"), ["memory.sram.per_block", "from 1 B to 1 GiB", "given 2 GiB"]),
        (sram("1.5"), ["memory.sram.per_block", "whole number of B", "given 1.5"]),
        (sram(".nan"), ["memory.sram.per_block", "finite"]),
        (sram("-.inf"), ["memory.sram.per_block", "finite"]),
        (sram("1e999"), ["memory.sram.per_block", "finite"]),
        (sram("'1e999'"), ["memory.sram.per_block", "beyond 1e308"]),
        (sram("true"), ["memory.sram.per_block", "given True"]),
        (sram("no"), ["memory.sram.per_block", "'no' is not a number"]),
        (sram("1:30"), ["memory.sram.per_block", "'1:30' is not a number"]),
        (sram("0x10"), ["memory.sram.per_block"]),
        (sram("'٣'"), ["memory.sram.per_block", "not a number"]),
        (sram("[1, 2]"), ["memory.sram.per_block", "given [1, 2]"]),
        (sram("{}"), ["memory.sram.per_block.value", "required"]),
        (sram("{value: 1, unit: [B]}"), ["memory.sram.per_block", "unit ['B']"]),
        (sram("{value: 1 KiB, unit: KiB}"), ["memory.sram.per_block", "not a number"]),
        (sram("{value: 1, sorce: x}"), ["memory.sram.per_block", "'sorce'", "did you mean 'source'?"]),
        (sram("{value: 1, source: []}"), ["memory.sram.per_block.source"]),
        (sram("{value: 1, alternatives: [{value: -1}]}"), ["memory.sram.per_block", "given -1"]),
        (sram("9" * 5000), ["mine.yaml", "5000 digits"]),
        (sram("~"), ["memory.sram.per_block", "'228 KiB'"]),
        ("schema: 1\nname: mine\n", ["memory.sram.per_block"]),
        ("schema: 1\nmemory: {sram: {per_block: 1 KiB}}", ["name", "required"]),
        ('schema: 1\nname: "a\\nb"\n', ["name", "'a\\nb' given"]),
        ("schema: 1\nname: 5\nmemory: {sram: {per_block: 1 KiB}}", ["name", "5 given; allowed: text"]),
        (LEAST + "tile_alignment: 0", ["tile_alignment", "0 given; allowed: at least 1"]),
        (LEAST + "compute: {clock: {boost: 1.83}}", ["compute.clock.boost", "from 1 MHz to 100 GHz"]),
        (LEAST + "compute: {peak: {bf16: 989.4}}", ["compute.peak.bf16", "FLOP/s"]),
        (LEAST + "compute: {units: 12 SM}", ["compute.units", "a plain number"]),
        (LEAST + "memroy: {}", ["unknown key 'memroy'", "did you mean 'memory'?"]),
        (LEAST + "self: {}", ["unknown key 'self'"]),
        (LEAST + "compute: {peak: {bf61: 1}}", ["compute.peak", "'bf61'", "did you mean 'bf16'?"]),
        (LEAST + "compute: 5", ["compute", "5 given; allowed: a mapping of the fields of Compute"]),
        (LEAST + "architecture: sm_9", ["architecture", "'sm_9'", "did you mean 'sm_90'?"]),
        (LEAST + "architecture: [x]", ["architecture", "['x']"]),
        (LEAST + "name: again", ["line 4", "'name' is given twice"]),
        (LEAST.replace("1", "2", 1), ["schema: 2 is not supported", "schema 1"]),
        (LEAST.replace("1", "0", 1), ["schema: 0"]),
        (LEAST.replace("1", "true", 1), ["schema: True"]),
        (LEAST.replace("schema: 1", ""), ["schema: missing", "schema: 1"]),
        ("a: &x [1]\nb: *x", ["line 1", "anchors"]),
        ("a: !!python/object/apply:os.system [ls]", ["line 1", "tags"]),
        ("a: ! b", ["tags"]),
        ("a: 1\n---\nb: 2", ["line 2", "single document"]),
        ("- 1", ["mapping", "given [1]"]),
        ("", ["mapping", "given None"]),
        ("1: 2", ["keys must be strings"]),
        ("[a]: 2", ["keys must be strings"]),
        ("a: [1", ["line 1"]),
        ("a: \x00", ["#x0000"]),
        ("a: [" + "1, " * 10_000 + "]", ["more than 10000"]),
        ("[" * 100_000, ["nested deeper than 16"]),
        ('a: "\\UFFFFFFFF"', ["mine.yaml"]),
        (b"\xff\xfea", ["UTF-8", "byte 0"]),
        (b"#" * (LARGEST_FILE + 1), ["1048576 B"]),
    ],
)
def test_refusals_are_one_line_with_the_field(load, content, parts):
    with pytest.raises(SpecError) as error:
        load(content)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 800
    for part in ["mine.yaml: ", *parts]:
        assert part in message


@pytest.mark.parametrize("path", ["no/such.yaml", "no-such.yml", "a\x00b.yaml", "/dev/null/x.yaml"])
def test_unreadable_paths(path):
    with pytest.raises(SpecError, match="cannot be read"):
        hardware(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(SpecError, match="a directory"):
        hardware(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.yaml")
        with pytest.raises(SpecError, match="not a regular file"):
            hardware(tmp_path / "pipe.yaml")
    with pytest.raises(UnknownNameError, match=r"hardware: 'h100-sxm4' is unknown; did you mean 'h100-sxm5'\?"):
        hardware("h100-sxm4")
    with pytest.raises(
        AmbiguousNameError,
        match="'V100-PCIe' is ambiguous: v100-pcie-16gb, v100-pcie-32gb; allowed: one of these names",
    ):
        hardware("V100-PCIe")
    assert hardware("H100-SXM5") is hardware("h100-sxm5")
    for wrong in (None, 5, b"h100-sxm5"):
        with pytest.raises(InputError, match="hardware: a name or the path"):
            hardware(wrong)


def test_a_user_may_build_on_an_architecture(load):
    own = load("schema: 1\nname: cut down\narchitecture: sm_90\nmemory: {sram: {per_block: 100 KiB}}")
    assert own.sram_per_block == 102400
    assert own.limits == hardware("h100-sxm5").limits
    assert load("schema: 1\nname: mine\narchitecture: sm_90").sram_per_block == 232448


def test_direct_construction_raises_the_same_family():
    device = Hardware(schema=1, name="mine")
    with pytest.raises(SpecError, match=r"memory\.sram\.per_block"):
        device.sram_per_block  # noqa: B018
    with pytest.raises(InputError, match=r"memory\.sram\.per_block: must be"):
        Hardware(schema=1, name="mine", memory={"sram": {"per_block": -1}})
    with pytest.raises(ValueError, match="frozen"):
        device.name = "other"


def test_yaml_1_1_words_stay_text():
    found = parse(b"[no, 1:30, 2024-01-01, 010, 1e9, 0o7, ~, 1_0, on, 3.35e12]".join([b"a: ", b""]), "x")
    assert found["a"] == ["no", "1:30", "2024-01-01", 10, 1e9, "0o7", None, "1_0", "on", 3.35e12]


@pytest.mark.parametrize("name", list_hardware())
def test_shipped_devices_round_trip(name, load):
    device = hardware(name)
    assert load(device.to_yaml()) == device
    assert load(yaml.safe_dump(device.to_dict())) == device


text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"))
plain = st.none() | st.booleans() | st.integers() | st.floats() | text | st.sampled_from(["228 KiB", "1 TB/s", "1e9"])
keys = st.sampled_from(["schema", "name", "memory", "sram", "per_block", "value", "unit", "source", "peak"]) | text
nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "fuzz.yaml"


def load_or_refuse(path, content):
    path.write_bytes(content)
    try:
        message = str(hardware(path).id)
    except SpecError as error:
        message = str(error)
    assert message.isprintable()


@settings(deadline=None)
@given(
    name=text.filter(lambda t: 1 <= len(t) <= 200),
    size=st.integers(1, 2**30),
    rate=st.floats(1e6, 1e15),
    note=text,
)
def test_any_device_round_trips(scratch, name, size, rate, note):
    hbm = {"bandwidth": {"value": rate, "note": note[:500] or None, "alternatives": [{"value": rate / 2 + 1e6}]}}
    device = Hardware(schema=1, name=name, memory={"sram": {"per_block": size}, "hbm": hbm})
    scratch.write_text(device.to_yaml(), encoding="utf-8")
    assert hardware(scratch) == device
    assert parse(dump(device.to_dict()).encode(), "x") == device.to_dict()


@settings(deadline=None)
@given(data=st.dictionaries(keys, nested, max_size=6), valid=st.booleans())
def test_any_data_loads_or_is_refused(scratch, data, valid):
    start = {"schema": 1, "name": "mine"} if valid else {}
    load_or_refuse(scratch, yaml.safe_dump({**start, **data}, allow_unicode=True).encode())
    load_or_refuse(scratch, dump({**data, **start}).encode())


@settings(deadline=None)
@given(content=st.binary() | st.text().map(lambda t: t.encode("utf-8", "surrogatepass")), at=st.integers(0, 60))
def test_any_bytes_load_or_are_refused(scratch, content, at):
    load_or_refuse(scratch, content)
    load_or_refuse(scratch, LEAST.encode()[:at] + content + LEAST.encode()[at:])


@settings(deadline=None)
@given(content=st.text(alphabet="{}[]:,-?!&*#|>%@'\"\\ \n\tab1.e", max_size=60), at=st.integers(0, 60))
def test_any_yaml_punctuation_loads_or_is_refused(scratch, content, at):
    load_or_refuse(scratch, (LEAST[:at] + content + LEAST[at:]).encode())


@given(st.data())
def test_a_name_with_other_separators_is_the_listed_name(data):
    name = data.draw(st.sampled_from(list_hardware()))
    apart = data.draw(st.sampled_from([" ", "_", "-", "--"]))
    assert hardware(name.replace("-", apart).upper()) is hardware(name)


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("rtx-4090", "rtx4090"),
        ("RTX 3090", "rtx3090"),
        ("gh200", "gh200-96gb"),
        ("RTX 5060 Ti", "rtx5060ti-16gb"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "rtx4070ti-super"),
        ("geforce_rtx_4090_D", "rtx4090d"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("RTX 3060 12GB", "rtx3060"),
        ("nvidia rtx 3080 10 GB", "rtx3080"),
    ],
)
def test_a_name_that_one_device_alone_has_or_begins_with(given_name, name):
    assert hardware(given_name) is hardware(name)


@pytest.mark.parametrize(
    ("given_name", "name", "others"),
    [
        ("h100", "h100-sxm5", "h100-nvl, h100-pcie"),
        ("NVIDIA H100", "h100-sxm5", "h100-nvl, h100-pcie"),
        ("h100-80gb", "h100-sxm5", "h100-pcie"),
        ("h200", "h200-sxm", "h200-nvl"),
        ("a100", "a100-sxm4-80gb", "a100-pcie-80gb, a100-sxm4-40gb"),
        ("A100 80GB", "a100-sxm4-80gb", "a100-pcie-80gb"),
        ("a100-sxm4", "a100-sxm4-80gb", "a100-sxm4-40gb"),
        ("v100", "v100-sxm2-16gb", "v100-pcie-16gb, v100-pcie-32gb, v100-sxm2-32gb"),
        ("Tesla V100 32GB", "v100-sxm2-32gb", "v100-pcie-32gb"),
    ],
)
def test_the_name_of_a_family_is_the_device_that_takes_precedence(given_name, name, others):
    device = hardware(given_name)
    assert device == hardware(name)
    assert device.assumed == (f"{given_name}: taken as {name}; also {others}",)
    assert device.assumed[0] in str(device)
    assert hardware(name).assumed == ()
    assert pickle.loads(pickle.dumps(device)).assumed == device.assumed


def test_each_family_with_a_number_has_a_device_that_takes_precedence():
    families: dict[str, list[int | None]] = {}
    for name in list_hardware():
        families.setdefault(name.partition("-")[0], []).append(hardware(name).precedence)
    for first, ranks in families.items():
        ordered = sorted(rank for rank in ranks if rank is not None)
        assert ordered == [*range(1, len(ordered) + 1)]
        known = first in list_hardware() or len(ranks) == 1 or not any(map(str.isdigit, first))
        assert known != bool(ordered)


@pytest.mark.parametrize("brand", ["ascend", "mi300", "b20"])
def test_neither_a_brand_nor_a_part_of_a_number_is_a_device(brand):
    with pytest.raises(UnknownNameError, match="is unknown; did you mean"):
        hardware(brand)


@pytest.mark.parametrize("variant", ["rtx 3060 8GB", "RTX 4090 Laptop GPU", "rtx 4060 ti 8gb", "GeForce"])
def test_a_variant_of_a_card_is_no_device(variant):
    with pytest.raises(UnknownNameError, match="is unknown"):
        hardware(variant)


@pytest.mark.parametrize("name", list_hardware())
def test_the_ridge_is_the_peak_over_the_bandwidth(name):
    device = hardware(name)
    for dtype, at in device.ridge.items():
        assert at * device.memory.hbm.bandwidth.value == pytest.approx(getattr(device.compute.peak, dtype).value)
        assert f"ridge.{dtype}" in str(device)


@given(power=st.integers(0, 14), first=st.sampled_from([1, 2, 999]))
def test_a_figure_is_printed_in_the_largest_unit_that_it_fills(power, first):
    """What is printed reads back."""
    for unit, base in (("B/s", 1000), ("FLOP/s", 1000), ("Hz", 1000), ("B", 1024)):
        kind, value = UnitKind(unit, 0, 10**18), first * (10 if base == 1000 else 2) ** power
        shown = kind.show(value)
        assert kind.number(shown) == pytest.approx(value, rel=1e-6)
        assert float(shown.split()[0]) < base or shown.split()[1].startswith("T")
