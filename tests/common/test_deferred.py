"""Fields that are computed when they are read change nothing but when: the result is the one of a plain dataclass."""

import copy
import pickle
from dataclasses import fields, replace

import pytest

import iomodel

CALL = iomodel.Attention(heads=4, q_len=1000, head_dim=64, mask="causal")
TILES = {"block_q": 128, "block_kv": 64}
COMPUTED = {
    "cost", "limited_by", "breakdown", "dram_bytes", "l2_bytes", "lock_step_bytes", "compulsory_bytes",
    "requested_bytes", "kernels", "left_out", "assumed", "levels",
}  # fmt: skip


def made() -> iomodel.Estimate:
    return iomodel.estimate("flash2", CALL, "h100-sxm5", TILES)


def full() -> iomodel.Estimate:
    """The same estimate with every field given."""
    return replace(made())


def test_an_estimate_computes_its_time_at_once_and_the_rest_when_it_is_read() -> None:
    found = made()
    assert found.seconds > 0
    names = {field.name for field in fields(found)}
    assert names - vars(found).keys() == COMPUTED
    assert names <= vars(full()).keys()


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_any_field_may_be_read_first(name: str) -> None:
    found = made()
    assert getattr(found, name) == getattr(full(), name)
    assert found == full()


def test_copies_pickles_texts_and_plain_data_are_those_of_a_full_result() -> None:
    for same in (made(), copy.copy(made()), copy.deepcopy(made()), pickle.loads(pickle.dumps(made()))):
        assert same == full()
        assert (repr(same), str(same), same.to_json()) == (repr(full()), str(full()), full().to_json())
    assert pickle.dumps(made()).count(b"_later") == 0
    assert iomodel.Estimate.from_json(made().to_json()) == full()


def test_an_unknown_attribute_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="'Estimate' object has no attribute 'secnds'"):
        made().secnds  # type: ignore[attr-defined]  # noqa: B018
