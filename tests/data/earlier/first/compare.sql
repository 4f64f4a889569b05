PRAGMA application_id = 1416386418;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE cell (
    key TEXT PRIMARY KEY,            -- content hash of all that the answer depends on
    problem TEXT NOT NULL REFERENCES problem (hash),
    method TEXT NOT NULL,
    method_version TEXT NOT NULL,
    seed INTEGER NOT NULL,
    time_limit_s REAL NOT NULL,
    threads INTEGER NOT NULL,
    status TEXT NOT NULL,            -- optimal, feasible, infeasible, unknown, error
    value_key TEXT,                  -- exact objective key of the best mapping, a fraction
    bound_key TEXT,
    value REAL,                      -- the objective as people read it
    bound REAL,
    wall_s REAL NOT NULL,
    message TEXT NOT NULL,
    metrics TEXT,                    -- as in the results document, JSON
    mapping TEXT,                    -- nodes, outermost first, JSON
    trace TEXT NOT NULL,             -- [[seconds, value key, bound key, source, improved, heuristic], ...]
    versions TEXT NOT NULL,          -- of this program and its libraries, JSON
    ended TEXT NOT NULL,             -- UTC
    seal TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
INSERT INTO "cell" VALUES('04f2181903075ab89fe04ce6c936edcf1d7bcd3c35502ff75c1c5fcb48636cd3','7440f7a1d8a0142cb840c1d233e9f7fa1142a822ecbd664f579199fd72ceb14c','ls','0.1.0',0,5.0,1,'feasible','1273286361913439/17179869184','8836540967524780023638679/549755813888000000000',74115.0208,1.60735743839264250704e+04,1.32702689988946076482e-02,'','{"cycles": 8, "energy_pj": 9264.3776, "energy_pj_exact": "1273286361913439/137438953472", "energy_by_component_pj": {"compute": 76.8, "registers": 92.16, "buffer": 1224.6976, "network": 702.72, "dram": 7168, "static": 0}, "edp": 74115.0208, "time_s": 1.6e-08, "compute_cycles": 2, "utilization": 0.03125, "compute_utilization": 0.125, "atom_utilization": 0.125, "dram_read_bytes": 96, "dram_write_bytes": 32, "hop_bytes": 144, "network_overhead": 0.625, "reuse": 1.0, "busiest_link": "into engine 0", "busiest_link_bytes": 48.0, "peak_buffer_bytes": [56, 56, 56, 56], "atoms": 4, "steps": 2, "transfers": 12, "atoms_bound_cycles": 2, "closed_form": null}',NULL,'[[0.005439, null, "8836540967524780023638679/549755813888000000000", "all sizes", false, false], [0.013239, "1273286361913439/17179869184", "8836540967524780023638679/549755813888000000000", "ls", true, true]]','{"tilewright": "0.1.0", "python": "3.11.7", "numpy": "2.4.6", "ortools": "9.15.6755"}','2026-11-23T11:53:12+00:00','1c07cc91f3ad946efc70b8c1a0bbc666403229d3fb6eebf8b3773fdbac24ba38');
INSERT INTO "cell" VALUES('d4c78d60ee2d66b98943936b53746e9a22fa53018b03c31d5741be00ab780616','7440f7a1d8a0142cb840c1d233e9f7fa1142a822ecbd664f579199fd72ceb14c','rammer','0.1.0',0,5.0,1,'feasible','1273286361913439/17179869184','8836540967524780023638679/549755813888000000000',74115.0208,1.60735743839264250704e+04,9.55769399843120481818e-03,'','{"cycles": 8, "energy_pj": 9264.3776, "energy_pj_exact": "1273286361913439/137438953472", "energy_by_component_pj": {"compute": 76.8, "registers": 92.16, "buffer": 1224.6976, "network": 702.72, "dram": 7168, "static": 0}, "edp": 74115.0208, "time_s": 1.6e-08, "compute_cycles": 2, "utilization": 0.03125, "compute_utilization": 0.125, "atom_utilization": 0.125, "dram_read_bytes": 96, "dram_write_bytes": 32, "hop_bytes": 144, "network_overhead": 0.625, "reuse": 1.0, "busiest_link": "into engine 0", "busiest_link_bytes": 48.0, "peak_buffer_bytes": [56, 56, 56, 56], "atoms": 4, "steps": 2, "transfers": 12, "atoms_bound_cycles": 2, "closed_form": null}',NULL,'[[0.005902, null, "8836540967524780023638679/549755813888000000000", "all sizes", false, false], [0.009529, "1273286361913439/17179869184", "8836540967524780023638679/549755813888000000000", "rammer", true, true]]','{"tilewright": "0.1.0", "python": "3.11.7", "numpy": "2.4.6", "ortools": "9.15.6755"}','2026-11-23T11:53:12+00:00','1e8921d0dcb14aed3b788160371d1af49a1f3de68cf39062c85f4cbe466e1081');
CREATE TABLE place (
    suite TEXT, layer TEXT, arch TEXT, objective TEXT, part TEXT, method TEXT, seed INTEGER,
    count INTEGER NOT NULL,          -- how often the suite's network has the layer
    key TEXT NOT NULL,               -- the cell that belongs here by its inputs, there or still to come
    seal TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (suite, layer, arch, objective, part, method, seed)
) WITHOUT ROWID;
INSERT INTO "place" VALUES('arena','gemm:M=8,N=4,K=8 batch 1','atomic-8x8[engines=2x2]','edp','method','ls',0,1,'04f2181903075ab89fe04ce6c936edcf1d7bcd3c35502ff75c1c5fcb48636cd3','4fec0662dc9c37dafbf13493a49c1f6069e8f7c6371cbe5e16190d64f7c58783');
INSERT INTO "place" VALUES('arena','gemm:M=8,N=4,K=8 batch 1','atomic-8x8[engines=2x2]','edp','method','rammer',0,1,'d4c78d60ee2d66b98943936b53746e9a22fa53018b03c31d5741be00ab780616','e8a7bcbe0060c04a23b5c3cdd8c0324a45bfc71174a1b507355356b082feb8ac');
CREATE TABLE problem (
    hash TEXT PRIMARY KEY,           -- input hash
    record TEXT NOT NULL,            -- operator, machine, cost model, objective, factors as JSON
    seal TEXT NOT NULL DEFAULT ''    -- SHA-256 of the row's other columns, here as in the other tables
) WITHOUT ROWID;
INSERT INTO "problem" VALUES('7440f7a1d8a0142cb840c1d233e9f7fa1142a822ecbd664f579199fd72ceb14c','{"problem":{"network":{"name":"gemm:M=8,N=4,K=8","operators":[{"kind":"gemm","is_mac":true,"dimensions":[{"name":"M","bound":8,"like":"P"},{"name":"N","bound":4,"like":"K"},{"name":"K","bound":8,"like":"C"}],"tensors":[{"name":"A","role":"inputs","axes":[{"terms":[{"dim":"M","stride":1}],"size":8},{"terms":[{"dim":"K","stride":1}],"size":8}]},{"name":"B","role":"weights","axes":[{"terms":[{"dim":"K","stride":1}],"size":8},{"terms":[{"dim":"N","stride":1}],"size":4}]},{"name":"C","role":"outputs","axes":[{"terms":[{"dim":"M","stride":1}],"size":8},{"terms":[{"dim":"N","stride":1}],"size":4}]}]}],"layers":[{"name":"gemm","operator":0,"stored_weights":true}],"links":[],"outputs":["gemm"]},"machine":{"name":"atomic-8x8[engines=2x2]","description":"Atomic Dataflow, 8 x 8 engines of 16 x 16 PEs, 128 kB each, HBM at 128 GB/s (section V-A)","width":2,"height":2,"engine":{"rows":16,"columns":16,"dataflow":"kc","vector_lanes":16,"buffer_bytes":131072,"mac_energy":0.3,"buffer_read_energy":2.7337,"buffer_write_energy":2.7337,"register_energy":0.12,"vector_energy":0.1,"lanes":1,"startup_cycles":0,"element_bytes":1,"static_power":0.0},"clock_mhz":500.0,"topology":"mesh","link_rate":16.0,"port_rate":16.0,"dram_rate":256.0,"dram_ports":[[0,0],[1,0],[0,1],[1,1]],"dram_port_rate":16.0,"dram_energy":56.0,"hop_energy":4.88,"hop_cycles":1},"batch":1,"fuse":true,"partial_sums":"chain"},"objective":"edp","clock":"wall"}','21cfc482bcc1cf24d2bbc2a676d22bc027a6c122dadda78cc442341cee8d7fb8');
CREATE INDEX place_key ON place (key);
CREATE INDEX cell_problem ON cell (problem);
COMMIT;
