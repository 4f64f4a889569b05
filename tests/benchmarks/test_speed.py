"""The guard of speed: ratios to a reference loop, and what counts as growth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from studies.speed import Comparison, Measure, SpeedFile, compare, measure, quartiles, read_speed, table

from tilewright.foundation.disk import write_file
from tilewright.foundation.errors import InputError


class Clock:
    """A clock that tasks move; a machine that becomes slower lets it run faster."""

    def __init__(self) -> None:
        self.now, self.pace = 0.0, 1.0

    def task(self, seconds: float, *, slowing: float = 1.0) -> Callable[[], None]:
        """A task that takes so long, after which the machine is slower by a factor."""

        def work() -> None:
            self.now += seconds * self.pace
            self.pace *= slowing

        return work


def test_ratios_are_those_of_the_work() -> None:
    """A task of three reference loops has the ratio 3, also on a machine that becomes ever slower."""
    clock = Clock()
    tasks = {"three": clock.task(3.0), "half": clock.task(0.5)}
    measures = measure(tasks, 5, lambda: clock.now, clock.task(1.0, slowing=1.02))
    assert measures["three"].median == pytest.approx(3.0, rel=0.02)
    assert measures["half"].median == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("now", "then", "has_grown"),
    [
        ((2.0, 1.9, 2.1), (1.0, 0.9, 1.1), True),
        ((1.2, 1.19, 1.21), (1.0, 0.99, 1.01), True),
        ((1.08, 1.07, 1.09), (1.0, 0.99, 1.01), False),  # steady, but below the least growth
        ((1.5, 1.0, 2.0), (1.0, 0.8, 1.2), False),  # as far apart as single measurements are
        ((0.5, 0.4, 0.6), (1.0, 0.9, 1.1), False),
    ],
)
def test_growth_is_more_than_noise(
    now: tuple[float, float, float], then: tuple[float, float, float], has_grown: bool
) -> None:
    """Something has grown when the quartiles are apart and the medians by more than a tenth."""
    pair = [Measure(median=quartet[0], low=quartet[1], high=quartet[2]) for quartet in (now, then)]
    (comparison,) = compare({"task": pair[0]}, {"task": pair[1]})
    assert comparison.has_grown is has_grown
    assert ("has grown" in table([comparison])) is has_grown


def test_new_tasks_have_not_grown() -> None:
    """A task that the earlier file does not have is shown without a comparison."""
    (comparison,) = compare({"new": quartiles([1.0, 2.0, 3.0])}, {})
    assert comparison == Comparison("new", Measure(median=2.0, low=1.5, high=2.5), None)
    assert (comparison.growth, comparison.has_grown) == (None, False)


def test_files_are_read_back_and_checked(tmp_path: Path) -> None:
    """A file is read as it was written; one with other content is refused with the field."""
    path = tmp_path / "speed.json"
    content = SpeedFile(
        schema="tilewright.speed/1",
        tilewright="1",
        python="3",
        machine="m",
        repetitions=3,
        ratios={"a": quartiles([1.0, 1.5, 2.0])},
    )
    write_file(path, content.model_dump_json(by_alias=True))
    assert read_speed(path) == content
    for text, field in (('{"schema": "tilewright.result/1"}', "schema"), ("[]", "dictionary")):
        path.write_text(text)
        with pytest.raises(InputError, match=field):
            read_speed(path)
    path.write_text(content.model_dump_json(by_alias=True).replace("1.5", "-1.5", 1))
    with pytest.raises(InputError, match="median"):
        read_speed(path)
