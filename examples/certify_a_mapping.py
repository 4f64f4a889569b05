"""Somebody else's mapping: is it legal, what does it cost, and how far from the best can it be?

python examples/certify_a_mapping.py
"""

import tilewright as tw

NODES: list[dict[str, str | int]] = [
    {"store": "A", "level": "DRAM"},
    {"store": "B", "level": "DRAM"},
    {"store": "C", "level": "DRAM"},
    {"temporal": "M", "tile": 4},
    {"store": "A", "level": "GLB"},
    {"store": "C", "level": "GLB"},
    {"temporal": "K", "tile": 2},
    {"spatial": "N", "tile": 1, "axis": "x"},
    {"store": "A", "level": "RF"},
    {"store": "B", "level": "RF"},
    {"store": "C", "level": "RF"},
    {"temporal": "M", "tile": 1},
    {"temporal": "K", "tile": 1},
]


def main() -> float:
    """Evaluate the mapping, prove the optimum, and return how much is lost."""
    question = tw.layer("gemm:M=8,N=4,K=8").on("eyeriss-168", objective="energy")
    judged = tw.evaluate(NODES, question)
    print(judged)
    best = tw.solve(question, warm_starts=judged.mapping, stop=tw.seconds(60))
    assert best.bound is not None
    lost = judged.value / best.bound - 1
    print(f"{judged.value:.4g} pJ; nothing needs less than {best.bound:.4g} pJ: at most {lost:.1%} is lost")
    print(tw.check(best, prove=True, stop=tw.seconds(60)))
    return lost


if __name__ == "__main__":
    main()
