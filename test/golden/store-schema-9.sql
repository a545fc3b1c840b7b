-- A file of the ninth schema as its store wrote it, dumped. Made once, and never changed. The head of `cut` was changed by hand.
PRAGMA application_id = 1416786548;
CREATE TABLE accounts (
    id TEXT PRIMARY KEY, cap REAL, held REAL NOT NULL, spent REAL NOT NULL, assumed REAL NOT NULL, sum INTEGER
  ) STRICT, WITHOUT ROWID;
CREATE TABLE blob_refs (hash TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (hash, session)) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
    n INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, media TEXT NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL
  ) STRICT;
CREATE TABLE events (pos INTEGER PRIMARY KEY, session INTEGER NOT NULL, sum INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
INSERT INTO "events" VALUES(1,1,1018409791,'{"type":"session.created","agent":"a","planner":"model","seq":1,"at":1700000000000,"epoch":0}');
INSERT INTO "events" VALUES(2,1,-1660818210,'{"type":"user.message","id":"m1","parts":[{"type":"text","text":"Fix the\n  flaky' || char(8238) || ' test"}],"when":"next","seq":2,"at":1700000000010,"epoch":0}');
INSERT INTO "events" VALUES(3,2,-114601137,'{"type":"session.created","agent":"a","planner":"model","metadata":{"title":"Publish the news","owner":"ana"},"labels":{"team":"blue"},"seq":1,"at":1700000000020,"epoch":0}');
INSERT INTO "events" VALUES(4,2,479686141,'{"type":"user.message","id":"m1","parts":[{"type":"text","text":"something else"}],"when":"next","seq":2,"at":1700000000030,"epoch":0}');
INSERT INTO "events" VALUES(5,1,1842747745,'{"type":"agent.message","parts":[],"calls":[],"verdict":{"type":"final"},"usage":{"inputTokens":100,"outputTokens":20},"cost":5,"seq":3,"at":1700000000040,"epoch":1}');
INSERT INTO "events" VALUES(6,1,346638966,'{"type":"model.failed","class":"transport","message":"the \"usage\":{ of it","retryable":true,"usage":{"inputTokens":7,"outputTokens":0},"seq":4,"at":1700000000040,"epoch":1}');
INSERT INTO "events" VALUES(7,3,-1386225248,'{"type":"session.created","agent":"a","planner":"model","fork":{"session":"plain","seq":3},"seq":1,"at":1700000000050,"epoch":0}');
INSERT INTO "events" VALUES(8,4,-1951066970,'{"type":"session.created","agent":"a","planner":"model","seq":1,"at":1700000000060,"epoch":0}');
INSERT INTO "events" VALUES(9,5,-1686678307,'{"type":"session.created","agent":"a","planner":"model","parent":{"session":"plain","call":"3.0","root":"plain","depth":1},"seq":1,"at":1700000000070,"epoch":0}');
INSERT INTO "events" VALUES(10,5,1798048832,'{"type":"user.message","id":"m1","parts":[{"type":"text","text":"look at the log"}],"when":"next","seq":2,"at":1700000000080,"epoch":0}');
INSERT INTO "events" VALUES(11,6,256327338,'{"type":"session.created","agent":"a","planner":"model","metadata":{"title":"what a file says","owner":"mallory"},"seq":1,"at":1700000000090,"epoch":0}');
INSERT INTO "events" VALUES(12,6,230691505,'{"type":"user.message","id":"m1","parts":[{"type":"text","text":"the first words"}],"when":"next","seq":2,"at":1700000000090,"epoch":0}');
INSERT INTO "events" VALUES(13,6,-283539909,'{"type":"session.imported","from":"x","seq":3,"at":1700000000090,"epoch":1,"metadata":{"owner":"bob"}}');
INSERT INTO "events" VALUES(14,7,332051652,'{"type":"session.created","agent":"a","planner":"model","seq":1,"at":1700000000100,"epoch":0}');
INSERT INTO "events" VALUES(15,7,2031818919,'{"type":"user.message","id":"m1","parts":[{"type":"text","text":"a head that does not match its sum"}],"when":"next","seq":2,"at":1700000000110,"epoch":0}');
CREATE TABLE forks (session INTEGER PRIMARY KEY, origin TEXT NOT NULL) STRICT;
INSERT INTO "forks" VALUES(3,'plain');
CREATE TABLE heads (n INTEGER PRIMARY KEY, seq INTEGER, at REAL, pos INTEGER, tail TEXT, sum INTEGER) STRICT;
INSERT INTO "heads" VALUES(1,4,1700000000040,6,'1,1,3,5',951774755);
INSERT INTO "heads" VALUES(2,2,1700000000030,4,'1,3',93419301);
INSERT INTO "heads" VALUES(3,1,1700000000050,7,'1,7',-610198042);
INSERT INTO "heads" VALUES(4,1,1700000000060,8,'1,8',1224496464);
INSERT INTO "heads" VALUES(5,2,1700000000080,10,'1,9',-1279380883);
INSERT INTO "heads" VALUES(6,3,1700000000090,13,'1,11',-2034010852);
INSERT INTO "heads" VALUES(7,2,1700000000111,15,'1,14',-759781396);
CREATE TABLE holds (
    key TEXT PRIMARY KEY, amount REAL NOT NULL, accounts TEXT NOT NULL, session TEXT, sum INTEGER
  ) STRICT, WITHOUT ROWID;
CREATE TABLE inbox (
    session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, pos INTEGER NOT NULL, PRIMARY KEY (session, id)
  ) STRICT, WITHOUT ROWID;
INSERT INTO "inbox" VALUES(1,'m1',2,2);
INSERT INTO "inbox" VALUES(2,'m1',2,4);
INSERT INTO "inbox" VALUES(5,'m1',2,10);
INSERT INTO "inbox" VALUES(6,'m1',2,12);
INSERT INTO "inbox" VALUES(7,'m1',2,15);
CREATE TABLE labels (
    name TEXT NOT NULL, value TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (name, value, session)
  ) STRICT, WITHOUT ROWID;
INSERT INTO "labels" VALUES('team','blue',2);
CREATE TABLE meta (version INTEGER NOT NULL, store TEXT NOT NULL) STRICT;
INSERT INTO "meta" VALUES(9,'d3dd29512839797ddfaed5c39962cac8');
CREATE TABLE removals (
    n INTEGER PRIMARY KEY, session TEXT NOT NULL, epoch INTEGER NOT NULL, agent TEXT NOT NULL, events INTEGER NOT NULL,
    bytes INTEGER NOT NULL, at REAL NOT NULL, by TEXT NOT NULL
  ) STRICT;
CREATE TABLE sessions (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL, worker TEXT, due REAL,
    status TEXT NOT NULL, root TEXT NOT NULL, card TEXT NOT NULL,
    urgent INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, trouble TEXT,
    sum INTEGER, card_sum INTEGER, folder TEXT, parent TEXT
  ) STRICT;
INSERT INTO "sessions" VALUES(1,'plain',1,NULL,NULL,'idle','plain','{"session":"plain","agent":"a","root":"plain","status":"idle","due":null,"cost":5,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[]}',0,0,NULL,7273435,1521578944,NULL,NULL);
INSERT INTO "sessions" VALUES(2,'named',0,NULL,1700000000030,'idle','named','{"session":"named","agent":"b","root":"named","status":"idle","due":null,"cost":0,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[],"labels":{"team":"blue"}}',1,0,NULL,-270609675,1750751805,NULL,NULL);
INSERT INTO "sessions" VALUES(3,'fork',0,NULL,NULL,'idle','fork','{"session":"fork","agent":"a","root":"fork","status":"idle","due":null,"cost":0,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[]}',0,0,NULL,1005539105,-1433522202,NULL,NULL);
INSERT INTO "sessions" VALUES(4,'empty',0,NULL,NULL,'idle','empty','{"session":"empty","agent":"a","root":"empty","status":"idle","due":null,"cost":0,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[]}',0,0,NULL,1527172014,251274986,NULL,NULL);
INSERT INTO "sessions" VALUES(5,'plain~3.0',0,NULL,1700000000080,'idle','plain','{"session":"plain~3.0","agent":"a","root":"plain","status":"idle","due":null,"cost":0,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[],"parent":"plain"}',1,0,NULL,1377320164,-356064049,NULL,'plain');
INSERT INTO "sessions" VALUES(6,'arrived',1,NULL,NULL,'idle','arrived','{"session":"arrived","agent":"a","root":"arrived","status":"idle","due":null,"cost":0,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[]}',0,0,NULL,-1199952817,-676400301,NULL,NULL);
INSERT INTO "sessions" VALUES(7,'cut',0,NULL,1700000000110,'idle','cut','{"session":"cut","agent":"a","root":"cut","status":"idle","due":null,"cost":0,"wakes":0,"outcome":null,"seq":0,"at":0,"asks":[],"waits":[]}',1,0,NULL,-1612409925,420019922,NULL,NULL);
CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version INTEGER NOT NULL, sum INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
INSERT INTO "snapshots" VALUES(1,4,1,-654424024,'{"seq":4}');
CREATE TABLE spans (key INTEGER PRIMARY KEY, pos INTEGER NOT NULL) STRICT;
CREATE TABLE workers (
    id TEXT PRIMARY KEY, until REAL NOT NULL, ttl REAL NOT NULL, address TEXT, host TEXT, pid INTEGER, started INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO "workers" VALUES('w1',1700000030040,30000,NULL,NULL,NULL,NULL);
CREATE INDEX blob_refs_session ON blob_refs (session);
CREATE INDEX forks_origin ON forks (origin);
CREATE INDEX heads_at ON heads (at);
CREATE INDEX labels_session ON labels (session);
CREATE INDEX removals_session ON removals (session);
CREATE INDEX sessions_due ON sessions (urgent, due) WHERE worker IS NULL AND due IS NOT NULL;
CREATE INDEX sessions_folder ON sessions (folder) WHERE folder IS NOT NULL;
CREATE INDEX sessions_parent ON sessions (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX sessions_root ON sessions (root, id);
CREATE INDEX sessions_status ON sessions (status, id);
CREATE INDEX sessions_worker ON sessions (worker) WHERE worker IS NOT NULL;
CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM removals WHERE n = old.session)
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
