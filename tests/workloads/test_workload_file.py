"""Workloads of several networks: the built-in ones, files of users, and the errors of malformed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.foundation.errors import InputError, ReadingLimitError
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.scheduling import workload_file
from tilewright.workloads.scheduling.workload import Part, Workload
from tilewright.workloads.scheduling.workload_file import (
    is_workload,
    list_workloads,
    load_workload,
    resolve_workload,
)

TABLE_II = {
    "ar-vr-a": {"resnet50": 2, "unet": 4, "mobilenet-v2": 4},
    "ar-vr-b": {"resnet50": 2, "unet": 2, "mobilenet-v2": 4, "handpose": 2, "depthnet": 2},
    "mlperf-1": dict.fromkeys(["resnet50", "mobilenet-v1", "ssd-resnet34", "ssd-mobilenet-v1", "gnmt"], 1),
    "mlperf-8": dict.fromkeys(["resnet50", "mobilenet-v1", "ssd-resnet34", "ssd-mobilenet-v1", "gnmt"], 8),
}


def test_the_built_in_workloads_are_those_of_heralds_table() -> None:
    """Every workload of Herald's table II has its networks and numbers of batches."""
    assert list_workloads() == tuple(TABLE_II)
    for name, parts in TABLE_II.items():
        assert {part.name: part.batches for part in load_workload(name).parts} == parts


def test_totals_count_every_run_but_share_parameters() -> None:
    """Work and layers grow with the number of runs; the runs of a network use the same weights."""
    single, eight = load_workload("mlperf-1"), load_workload("mlperf-8")
    assert eight.macs == 8 * single.macs
    assert eight.layer_count() == 8 * single.layer_count() == 8 * 202
    assert single.layer_count(mac_only=False) > single.layer_count()
    assert eight.parameters == single.parameters
    assert len(list(eight.instances())) == 40
    assert next(eight.instances())[0] == "resnet50/1"
    assert next(single.instances())[0] == "resnet50"


def test_a_users_file_finds_models_beside_it(tmp_path: Path) -> None:
    """Paths are relative to the file; a model that is named twice gets two names."""
    (tmp_path / "two.yaml").write_text("- gemm:M=1,N=2,K=3\n- gemm:M=4,N=5,K=6\n")
    file = tmp_path / "mine.yaml"
    file.write_text(
        "description: |\n  Two lines\n  of text.\nnetworks:\n"
        "  - {model: two.yaml}\n  - {model: two.yaml, batches: 3}\n"
        "  - {model: 'fc:K=2,C=3', name: head, batch: 5}\n"
    )
    workload = load_workload(file)
    assert workload.name == "mine"
    assert workload.description == "Two lines of text."
    assert [(part.name, part.batches, part.network.batch) for part in workload.parts] == [
        ("two", 1, 1),
        ("two#2", 3, 1),
        ("head", 1, 5),
    ]
    assert workload.macs == 4 * (6 + 120) + 30
    assert is_workload({"networks": []})
    assert not is_workload([{"networks": 1}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {model: unet}\n", "expected a mapping with the field networks"),
        ("networks: []\n", "networks: expected at least 1 entries, got []"),
        ("networks: [{model: unet, batchs: 2}]\n", "unknown name 'batchs', did you mean 'batches'?"),
        ("networks: [{model: unet, batches: 0}]\n", "networks.0.batches: expected at least 1, got 0"),
        ("networks: [{model: unet, batches: '2'}]\n", "networks.0.batches: expected an integer, got '2'"),
        ("networks: [{batches: 2}]\n", "networks.0.model: missing"),
        ("networks: [{model: unett}]\n", "networks.0.model: unett: no such model, did you mean 'unet'?"),
        ("networks: [{model: gone.onnx}]\n", "networks.0.model:"),
        ("networks: 3\n", "networks: expected a list, got 3"),
        ("networks: [\n", "not valid YAML"),
    ],
)
def test_malformed_files_are_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """A fault names the file, the field and what was expected."""
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_workload(file)
    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_names_are_told_with_the_nearest() -> None:
    """A name that is no workload is told with the nearest one."""
    with pytest.raises(InputError, match="did you mean 'ar-vr-a'"):
        load_workload("ar-vr-aa")


def test_a_broken_file_is_no_unknown_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's file that cannot be read says so, also where it is called almost as a workload is."""
    monkeypatch.chdir(tmp_path)
    Path("ar-vr-a.onnx").write_text("junk")
    with pytest.raises(InputError, match="not an ONNX model"):
        resolve_workload("ar-vr-a.onnx")
    with pytest.raises(InputError, match="no such workload or model, did you mean 'ar-vr-a'"):
        resolve_workload("ar-vr-aa")


def test_a_limit_inside_a_workload_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time is up while a workload's model is read, the error is that of a limit, not of bad input."""

    def slow(*_: object) -> None:
        raise ReadingLimitError("model.onnx", "node conv1", "takes longer to read than the time limit of 3 s")

    monkeypatch.setattr(workload_file, "resolve_model", slow)
    with pytest.raises(ReadingLimitError, match=r"networks\.0\.model: model.onnx: node conv1: takes longer"):
        load_workload("ar-vr-a")


def test_a_workload_needs_distinct_parts() -> None:
    """No parts, a name used twice and a number of batches below one are refused."""
    network = resolve_model("gemm:M=1,N=2,K=3")
    for parts, message in (
        ((), "networks: expected at least one"),
        ((Part("a", network), Part("a", network)), "a: two networks have this name"),
        ((Part("a", network, 0),), "a.batches: expected at least 1, got 0"),
    ):
        with pytest.raises(InputError, match=message):
            Workload("w", parts)
