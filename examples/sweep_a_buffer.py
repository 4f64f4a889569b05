"""Which buffer is best?  One field of a machine over eight sizes, all proven, drawn, the best one kept.

python examples/sweep_a_buffer.py [--quick] [PICTURE.png]
"""

import sys
from pathlib import Path
from typing import Any

import tilewright as tw

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)  # kB


def access_energy(kilobytes: int) -> float:
    """pJ per element: a larger memory costs more, as the square root of its size; 6 pJ at 128 kB."""
    return round(6 * (kilobytes / 128) ** 0.5, 6)


def sweep(quick: bool = False) -> list[dict[str, Any]]:
    """One row per size: energy, its bound, and cycles."""
    base = tw.machine("nvdla-256")
    layer = tw.layer("gemm:M=32,N=16,K=32" if quick else "conv:K=128,C=128,P=28,Q=28,R=3,S=3,pad=1")
    rows = []
    before = None
    for size in SIZES:
        machine = base.with_(
            {"levels.CBUF.capacity": f"{size} kB", "levels.CBUF.energy": access_energy(size)},
            name=f"cbuf-{size}kB",
        )
        stop = tw.seconds(5 if quick else 60) | tw.gap(0.02)
        result = tw.solve(layer.on(machine, "energy"), stop=stop, warm_starts=before or ())
        before = result
        cycles = None if result.metrics is None else result.metrics.cycles
        rows.append({"kB": size, "energy": result.value, "bound": result.bound, "cycles": cycles})
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Energy and its bound over the size (needs matplotlib)."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    sizes = [row["kB"] for row in rows]
    axes.plot(sizes, [row["energy"] * 1e-6 for row in rows], "o-", label="best mapping")
    axes.plot(sizes, [row["bound"] * 1e-6 for row in rows], "k--", label="no mapping has less")
    axes.set(xscale="log", xlabel="buffer [kB]", ylabel="energy [µJ]")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def main(quick: bool = False, picture: Path | None = None) -> dict[str, Any]:
    """Sweep, tell, draw; returns the best design's row."""
    rows = sweep(quick)
    for row in rows:
        print(f"{row['kB']:4} kB  {row['energy'] * 1e-6:10.3f} µJ  at least {row['bound'] * 1e-6:10.3f} µJ")
    best = min(rows, key=lambda row: row["energy"])
    beaten = [row["kB"] for row in rows if row["bound"] > best["energy"]]
    print(f"best: {best['kB']} kB; proven worse: {', '.join(map(str, beaten)) or 'none'} kB")
    if picture is not None:
        draw(rows, picture)
    return best


if __name__ == "__main__":
    files = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    main("--quick" in sys.argv[1:], files[0] if files else None)
