"""Machine files of one's own engines, small enough for costs by hand."""

SLOW = """
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 7, fanout: {axes: [{name: k, size: 4, carries: [K]}], energy: 0.5, reduction: false}}
  - {name: RF, elements: 64, energy: 0.25, double_buffered: true}
"""
"""An array of four PEs at half the clock of the others."""

WIDE = """
clock_mhz: 1000
compute: {mac_energy: 3, element_bits: 16}
levels:
  - {name: DRAM, energy: 7}
  - {name: RF, elements: 64, energy: 1, double_buffered: true}
"""
"""A single PE with values of two bytes."""

TILE = """
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 200}
  - name: BUF
    capacity: 2 kB
    energy: 4
    bandwidth: 4 B/cycle
    fanout: {axes: [{name: k, size: 4, carries: [K]}], energy: 0.5, reduction: false}
  - {name: RF, elements: 64, energy: 0.25, double_buffered: true}
"""
"""A tile of a grid: its level ``BUF`` is the engine's buffer."""
