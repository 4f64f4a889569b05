"""One layer, one network and one workload, each solved with a proof: the interface in ten lines.

python examples/solve_a_layer.py [--quick]
"""

import sys
import tempfile
from pathlib import Path

import tilewright as tw


def main(quick: bool = False) -> None:
    """Solve; ``quick`` takes smaller things and less time."""
    machine = tw.machine("tpu-edge" if quick else "nvdla-256")
    layer = tw.layer("gemm:M=16,N=8,K=16" if quick else "conv:K=64,C=64,P=56,Q=56,R=3,S=3,pad=1")
    model = "gemm:M=8,N=4,K=8" if quick else "resnet50"
    work = "gemm:M=8,N=4,K=8" if quick else "ar-vr-a"

    question = layer.on(machine, objective="edp", constraints=[] if quick else ["utilization>=0.8"])
    result = tw.solve(question, stop=tw.seconds(60) | tw.gap(0.01))
    print(result.status, result.value, result.bound, result.gap)
    print(result)

    document = tw.map_network(model, machine, objective="energy", stop=tw.seconds(60))
    with tempfile.TemporaryDirectory() as folder:
        document.save(Path(folder) / "r.json")
        print(tw.check(Path(folder) / "r.json"))

    plan = tw.solve(tw.workload(work).on(tw.system("hda-edge-maelstrom")), stop=tw.seconds(60))
    print(plan)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
