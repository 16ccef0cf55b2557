-- A database of schema version 1 as Penstock 0.1 made it (SQLite's own dump), with two topics in it.
BEGIN TRANSACTION;
CREATE TABLE committed_offsets (
	kind VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	partition_id INTEGER NOT NULL,
	"offset" BIGINT NOT NULL,
	leader_epoch INTEGER NOT NULL,
	note VARCHAR NOT NULL,
	committed_at_ms BIGINT NOT NULL,
	PRIMARY KEY (kind, name, partition_id),
	FOREIGN KEY(partition_id) REFERENCES partitions (id) ON DELETE CASCADE
);
INSERT INTO "committed_offsets" VALUES('kafka','billing',3,5,0,'it''s a note',1700000000000);
INSERT INTO "committed_offsets" VALUES('iggy-consumer','7',4,1099511627776,-1,'',0);
CREATE TABLE consumer_groups (
	topic_id VARCHAR(32) NOT NULL,
	group_id INTEGER NOT NULL,
	name VARCHAR NOT NULL,
	PRIMARY KEY (topic_id, group_id),
	UNIQUE (topic_id, name),
	FOREIGN KEY(topic_id) REFERENCES topics (id) ON DELETE CASCADE
);
INSERT INTO "consumer_groups" VALUES('9cb7f5ae60c8442a9c265d7baedcdee5',0,'readers');
INSERT INTO "consumer_groups" VALUES('9cb7f5ae60c8442a9c265d7baedcdee5',1,'writers');
CREATE TABLE namespaces (
	tenant VARCHAR NOT NULL,
	namespace VARCHAR NOT NULL,
	stream_id INTEGER NOT NULL,
	created_at_us BIGINT NOT NULL,
	PRIMARY KEY (tenant, namespace),
	UNIQUE (stream_id)
);
INSERT INTO "namespaces" VALUES('public','default',0,1795315607005179);
INSERT INTO "namespaces" VALUES('acme','shop',1,1795315607016626);
INSERT INTO "namespaces" VALUES('public','empty',2,1795315607028352);
CREATE TABLE partitions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	topic_id VARCHAR(32) NOT NULL,
	number INTEGER NOT NULL,
	UNIQUE (topic_id, number),
	FOREIGN KEY(topic_id) REFERENCES topics (id) ON DELETE CASCADE
);
INSERT INTO "partitions" VALUES(3,'9cb7f5ae60c8442a9c265d7baedcdee5',0);
INSERT INTO "partitions" VALUES(4,'9cb7f5ae60c8442a9c265d7baedcdee5',1);
INSERT INTO "partitions" VALUES(5,'73a1cdf6828546c6ba16e586f2056153',0);
CREATE TABLE properties (
	name VARCHAR NOT NULL,
	value VARCHAR NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "properties" VALUES('schema_version','1');
INSERT INTO "properties" VALUES('producer_ids_reserved','1000');
CREATE TABLE subscriptions (
	partition_id INTEGER NOT NULL,
	name VARCHAR NOT NULL,
	mark_delete BIGINT NOT NULL,
	acknowledged BLOB NOT NULL,
	properties VARCHAR NOT NULL,
	PRIMARY KEY (partition_id, name),
	FOREIGN KEY(partition_id) REFERENCES partitions (id) ON DELETE CASCADE
);
INSERT INTO "subscriptions" VALUES(3,'audit',3,X'05000000000000000700000000000000','{"team": "blue"}');
CREATE TABLE topics (
	id VARCHAR(32) NOT NULL,
	tenant VARCHAR NOT NULL,
	namespace VARCHAR NOT NULL,
	topic VARCHAR NOT NULL,
	kafka_name VARCHAR NOT NULL,
	iggy_topic_id INTEGER NOT NULL,
	partitioned BOOLEAN NOT NULL,
	config VARCHAR NOT NULL,
	created_at_us BIGINT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (tenant, namespace, topic),
	UNIQUE (tenant, namespace, iggy_topic_id),
	UNIQUE (kafka_name)
);
INSERT INTO "topics" VALUES('9cb7f5ae60c8442a9c265d7baedcdee5','public','default','orders','orders',1,1,'{"retention.ms": "1000"}',1795315607013708);
INSERT INTO "topics" VALUES('73a1cdf6828546c6ba16e586f2056153','acme','shop','größe','acme.shop.gr_C3_B6_C3_9Fe',0,0,'{}',1795315607017741);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('partitions',6);
COMMIT;
