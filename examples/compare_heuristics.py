"""How far from the optimum do published heuristics end?

python examples/compare_heuristics.py [--quick]
"""

import sys

import tilewright as tw

METHODS = ("random", "annealing", "genetic", "kapla")


def main(quick: bool = False) -> dict[str, float]:
    """Print and return the excess over the proven optimum, per method."""
    machine = tw.machine("eyeriss-168")
    layer = tw.layer("gemm:M=16,N=8,K=16" if quick else "conv:K=64,C=64,P=28,Q=28,R=3,S=3,pad=1")
    question = layer.on(machine, objective="edp", factors="perfect")
    optimum = tw.solve(question, stop=tw.seconds(120))
    print(f"{'optimum':12} {optimum.value:.4g} ({optimum.status})")
    found: dict[str, float] = {}
    for method in METHODS:
        if method not in tw.methods():
            continue
        result = tw.solve(question, method=method, stop=tw.seconds(0.5 if quick else 5), seed=1)
        if result.value is not None and optimum.value is not None:
            found[method] = result.value / optimum.value - 1
            print(f"{method:12} {result.value:.4g}  {found[method]:+.2%}")
    return found


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
