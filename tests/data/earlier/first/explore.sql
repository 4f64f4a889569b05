PRAGMA application_id = 1416381816;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE cell (
    key TEXT PRIMARY KEY,      -- content hash of all that the answer depends on
    status TEXT NOT NULL,      -- optimal, infeasible, or above: no key below the value
    value TEXT,                -- exact objective key, a fraction
    energy TEXT,               -- pJ, a fraction
    cycles TEXT,               -- integer
    mapping TEXT,              -- nodes, outermost first, JSON
    wall_s REAL NOT NULL,
    about TEXT NOT NULL,       -- kind and bounds of the layer, for people
    seal TEXT NOT NULL         -- SHA-256 of the row's other columns
) WITHOUT ROWID;
INSERT INTO "cell" VALUES('e9d1971f4695148aec1509cee1865ea7fa4d80c74800d12492eb121ae25cea59','optimal','759372/25','759372/25','13','[{"store": "A", "level": "DRAM"}, {"store": "B", "level": "DRAM"}, {"store": "C", "level": "DRAM"}, {"temporal": "M", "tile": 1}, {"store": "A", "level": "GBUF"}, {"store": "B", "level": "GBUF"}, {"store": "C", "level": "GBUF"}, {"store": "C", "level": "ACC"}, {"spatial": "K", "tile": 1, "axis": "c"}, {"spatial": "N", "tile": 1, "axis": "k"}, {"store": "B", "level": "REG"}]',0.0591010339994682,'gemm {"M": 8, "N": 4, "K": 8}','dfbb5e3ec60189ce3c0398f365e79e24443efe5a919d9811490302437035549f');
COMMIT;
