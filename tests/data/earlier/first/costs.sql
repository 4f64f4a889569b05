PRAGMA application_id = 0;
PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE costs (
    survey TEXT, first INTEGER, second INTEGER, bandwidth TEXT, metric TEXT,
    energy TEXT, cycles INTEGER, memory INTEGER, weights INTEGER, mapping TEXT, seal TEXT,
    PRIMARY KEY (survey, first, second, bandwidth, metric)
) WITHOUT ROWID;
INSERT INTO "costs" VALUES('42f3443cb20954e292f30bc692e5a46ea8f67cfeb120a9370a1a42a662ed412d',1,16,'4','cycles','30496',77,80,8,'3c11fb75dfb0ea4b917a656c80871443','fc23f31b45989d019a2f854920ff53c8cbfdeb23c51fbbe8a1668fc8c74b3e52');
INSERT INTO "costs" VALUES('42f3443cb20954e292f30bc692e5a46ea8f67cfeb120a9370a1a42a662ed412d',1,16,'4','edp','30496',77,80,8,'3c11fb75dfb0ea4b917a656c80871443','0b118ddaed676341ab5fb106b3699307293e80be452452decbfffb9d9ac68caf');
INSERT INTO "costs" VALUES('42f3443cb20954e292f30bc692e5a46ea8f67cfeb120a9370a1a42a662ed412d',1,16,'4','energy','30496',77,80,8,'3c11fb75dfb0ea4b917a656c80871443','6611be7360d2126fe03af1051ae515f03b058d1ac4308e1a56d1429c0f355fef');
INSERT INTO "costs" VALUES('fa35920b7d3892ef7cb06f886fdf6a5e67a4e464de54da7e823c020ddf2d5122',4,4,'12','cycles','31136',66,80,32,'510724856dbc1d6c945ef1f9063cb63b','9a97f24363af4cde5b04d91b0210913f99c1f2330fd544cba9a52ecc0be2080e');
INSERT INTO "costs" VALUES('fa35920b7d3892ef7cb06f886fdf6a5e67a4e464de54da7e823c020ddf2d5122',4,4,'12','edp','31136',66,80,32,'510724856dbc1d6c945ef1f9063cb63b','faa500ddd18b07e85714404e9494dcc8ce9ea999f4f7d705a3d544525541a6eb');
INSERT INTO "costs" VALUES('fa35920b7d3892ef7cb06f886fdf6a5e67a4e464de54da7e823c020ddf2d5122',4,4,'12','energy','31136',66,80,32,'510724856dbc1d6c945ef1f9063cb63b','8869e190e02fc01585d1f39b5e5ea21682b2a3bb53e90b4642798add28ecae5c');
CREATE TABLE mappings (hash TEXT PRIMARY KEY, nodes TEXT NOT NULL);
INSERT INTO "mappings" VALUES('3c11fb75dfb0ea4b917a656c80871443','[{"store":"A","level":"DRAM"},{"store":"B","level":"DRAM"},{"store":"C","level":"DRAM"},{"temporal":"N","tile":1},{"store":"A","level":"GLB"},{"store":"B","level":"GLB"},{"store":"C","level":"GLB"},{"temporal":"M","tile":1},{"spatial":"K","tile":1,"axis":"c"},{"store":"A","level":"PE"},{"store":"B","level":"PE"},{"store":"C","level":"PE"}]');
INSERT INTO "mappings" VALUES('510724856dbc1d6c945ef1f9063cb63b','[{"store":"A","level":"DRAM"},{"store":"B","level":"DRAM"},{"store":"C","level":"DRAM"},{"temporal":"M","tile":4},{"store":"A","level":"GLB"},{"store":"B","level":"GLB"},{"store":"C","level":"GLB"},{"temporal":"N","tile":1},{"temporal":"K","tile":1},{"spatial":"M","tile":1,"axis":"y"},{"store":"A","level":"PE"},{"store":"B","level":"PE"},{"store":"C","level":"PE"}]');
COMMIT;
