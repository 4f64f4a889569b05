"""Several networks on a chip of several engines, and what more memory would bring.

python examples/schedule_networks.py [--quick]
"""

import sys

import tilewright as tw


def main(quick: bool = False) -> list[tw.Plan]:
    """Schedule on the system as it is, and with other memories."""
    work = tw.workload("gemm:M=16,N=8,K=16" if quick else "ar-vr-a")
    system = tw.system("hda-edge-maelstrom")
    plans = []
    for changed in (system, system.with_({"memory": "8 MB"}), system.with_(keep_activations=True)):
        plan = tw.solve(work.on(changed, objective="edp"), stop=tw.seconds(5 if quick else 60))
        print(f"{changed.name}: {plan.status}, {plan.value} (gap {plan.gap})")
        plans.append(plan)
    print(plans[0])
    for row in plans[0].rows()[:5]:
        print(row["task"], row["engine"], row["start"], row["end"])
    return plans


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
