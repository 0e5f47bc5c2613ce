"""Drawings of schedules show every move of a trace, and no other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iomodel
from iomodel import plots

pytest.importorskip("matplotlib")
KINDS = ("read", "write", "read and write")
SIZES, TILES = st.integers(1, 40), st.integers(4, 12)


def boxes(figure, kind, tensor):
    """List the boxes of a tensor: bytes so far at both ends, share of its lane at both ends."""
    drawn = figure.findobj(lambda artist: artist.get_gid() == f"{kind} {tensor}")
    paths = [path.vertices for artist in drawn for path in artist.get_paths()]
    lanes = {
        label.get_text(): place for label, place in zip(figure.axes[0].get_yticklabels(), ticks(figure), strict=True)
    }
    return [(*corners[:, 0][[0, 1]], *(corners[:, 1][[0, 2]] - lanes[tensor] + 0.5)) for corners in paths]


def ticks(figure):
    return list(figure.axes[0].get_yticks())


@settings(max_examples=10)
@given(
    st.sampled_from(("flash1", "flash2", "small_cache", "split_kv")), SIZES, SIZES, TILES, TILES,
    st.sampled_from(("full", "causal")),
)  # fmt: skip
def test_boxes_are_the_traffic(name, q_len, kv_len, block_q, block_kv, mask):
    w = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=4, mask=mask)
    trace = iomodel.trace(name, w, tiles={"block_q": block_q, "block_kv": block_kv})
    counted = iomodel.cost(name, w, trace.tiles)
    figure = plots.moves(trace)
    spans = []
    for tensor in {*counted.reads, *counted.writes}:
        own = {kind: boxes(figure, kind, tensor) for kind in KINDS}
        widths = {kind: sum(stop - start for start, stop, _, _ in own[kind]) for kind in KINDS}
        item = {"O": 2, "Q": 2, "K": 2, "V": 2}.get(tensor, 4)
        if name != "small_cache":  # whose sums of O are fp32 until the last
            assert widths["read"] == counted.reads.get(tensor, 0) * item
            assert widths["write"] == counted.writes.get(tensor, 0) * item
        spans += [span for some in own.values() for span in some]
    spans.sort()
    assert [start for start, *_ in spans[1:]] == [stop for _, stop, *_ in spans[:-1]], "one move after another"
    assert spans[-1][1] == counted.hbm_bytes == figure.axes[0].get_xlim()[1]
    assert all(-1e-9 <= low < high <= 1 + 1e-9 for _, _, low, high in spans)


def test_a_box_spans_the_rows_of_its_tile():
    w = iomodel.Attention(q_len=64, head_dim=4)
    figure = plots.moves(iomodel.trace("flash2", w, tiles={"block_q": 32, "block_kv": 16}))
    rows = [(low, high) for _, _, low, high in boxes(figure, "read", "K")]
    assert np.allclose(rows, 2 * [(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1)])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["read 1x", "read 2x", "read 2x", "written 1x", "written 1x"]


def test_a_sum_in_hbm_moves_both_ways():
    w = iomodel.Attention(q_len=32, head_dim=4, direction="backward")
    trace = iomodel.trace("flash2", w, tiles={"block_q": 16, "block_kv": 8})
    figure = plots.moves(trace)
    counted = iomodel.cost("flash2", w, trace.tiles)
    summed = {event.tensor for event in trace.events if event.op == "Accumulate"}
    assert summed
    assert figure.axes[0].get_xlim()[1] == counted.hbm_bytes
    for tensor in summed:
        widths = [stop - start for start, stop, _, _ in boxes(figure, "read and write", tensor)]
        assert sum(widths) == sum(e.hbm_bytes for e in trace.events if (e.op, e.tensor) == ("Accumulate", tensor))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(iomodel.InputError, match=r"^trace: 3 given; allowed: the result of iomodel.trace$"):
        plots.moves(3)
    long = iomodel.trace("small_cache", iomodel.Attention(q_len=400, head_dim=4), tiles={"block_q": 8, "block_kv": 8})
    with pytest.raises(iomodel.InputError, match="moves given; allowed: up to 20,000, as of fewer tiles"):
        plots.moves(long)
