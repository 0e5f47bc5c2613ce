"""Rows of serving figures and their roles; one call of `plan` for each row."""

from collections import defaultdict

import pytest

from benchmarks.serving_newcomer import Asked, arguments, engine, kind, predicted, rows, table
from benchmarks.serving_split import FEWEST, LEFT_OUT, MORE, page_roles, roles

ROLES = "open", "judging", LEFT_OUT


def more():
    return [row for row in rows(ROLES) if "group" in row and not row["id"].startswith("p")]


def pages():
    return [row for row in rows(ROLES) if row["id"].startswith("p")]


def test_the_roles_of_set_ups_follow_from_their_names():
    listed = more()
    assert roles(listed) == {row["setup"]: row["role"] for row in listed}


def test_set_ups_of_the_pages_have_the_role_of_their_names_or_of_the_other_files():
    listed, known = pages(), {}
    for role in ROLES:
        for row in rows((role,)):
            if kind(row) in ("moe", "fp4", "throughput") and engine(row) == "trtllm" and row not in listed:
                precision = row.get("precision") or row["gemm"]
                known[f"trtllm | {row['model']} | {row['gpu']} | {precision}"] = role
    assert page_roles(listed, known) == {row["setup"]: row["role"] for row in listed}
    assert len(listed) == 411


def test_a_set_up_has_one_role():
    found = defaultdict(set)
    for row in more():
        found[row["setup"]].add(row["role"])
    assert all(len(some) == 1 for some in found.values())


@pytest.mark.parametrize("group", MORE)
def test_half_of_the_set_ups_of_a_large_group_judge(group):
    found = {row["setup"]: row["role"] for row in more() if row["group"] == group}
    if len({setup.rpartition(" | ")[0] for setup in found}) < FEWEST:
        assert set(found.values()) == {LEFT_OUT}
    else:
        assert abs(list(found.values()).count("judging") - len(found) / 2) <= 1


def test_judging_rows_name_a_public_source():
    assert all("/" in row["source"] or " " in row["source"] for row in rows(("judging",)))


def test_a_row_states_what_a_newcomer_knows():
    row = next(row for row in rows(("open",)) if row["id"] == "s0852")
    assert kind(row) == "moe"
    assert arguments(row)["kv_dtype"] is None
    assert arguments(row)["weight_dtype"] is None  # as released
    assert "batch" not in arguments(row)
    assert arguments(row, named=True)["engine"] == "tensorrt-llm"
    assert predicted(row) > 0


def test_a_table_counts_a_refused_row_as_an_error_of_100_percent():
    row = {"value": "2.0"}
    answered, refused = Asked(row, 2.2), Asked(row, None, "too small")
    assert list(table([answered, refused], lambda _: "all")) == ["| all | 2 | 1 | 55.0 % | 91.0 % | +10.0 % |"]


def test_clients_of_a_time_per_token_may_wait():
    row = next(row for row in rows(("open",)) if row["id"] == "s0002")  # 16 clients, of whom 14 fit
    assert arguments(row)["clients"] == 16
    assert 0 < predicted(row) < 1
