BEGIN TRANSACTION;
CREATE TABLE agents (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        port INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535)
    , checksum INTEGER NOT NULL DEFAULT 0, out_of_service INTEGER NOT NULL DEFAULT 0, service_reason TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID
    ;
INSERT INTO "agents" VALUES('ag1','127.85.0.1',8080,-1806073365577790465,0,'');
INSERT INTO "agents" VALUES('ag2','127.85.0.2',8080,-3001404563379361066,0,'');
INSERT INTO "agents" VALUES('ag3','127.85.0.3',8080,-305790873235092215,0,'');
INSERT INTO "agents" VALUES('ag4','127.85.0.4',8080,-6337388486689374626,0,'');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0009');
CREATE TABLE allocation_agents (
        agent TEXT PRIMARY KEY REFERENCES cluster_agents DEFERRABLE INITIALLY DEFERRED,
        allocation TEXT NOT NULL REFERENCES allocations DEFERRABLE INITIALLY DEFERRED
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "allocation_agents" VALUES('ag1','team');
INSERT INTO "allocation_agents" VALUES('ag2','team');
INSERT INTO "allocation_agents" VALUES('ag3','team');
INSERT INTO "allocation_agents" VALUES('ag4','team');
CREATE TABLE allocations (
        id TEXT PRIMARY KEY,
        cluster TEXT NOT NULL REFERENCES clusters DEFERRABLE INITIALLY DEFERRED
    , checksum INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID
    ;
INSERT INTO "allocations" VALUES('team','cl0',-4946836579401347610);
CREATE TABLE cluster_agents (
        agent TEXT PRIMARY KEY REFERENCES agents DEFERRABLE INITIALLY DEFERRED,
        cluster TEXT NOT NULL REFERENCES clusters DEFERRABLE INITIALLY DEFERRED,
        position INTEGER NOT NULL CHECK (position >= 0),
        UNIQUE (cluster, position)
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "cluster_agents" VALUES('ag1','cl0',0);
INSERT INTO "cluster_agents" VALUES('ag2','cl0',1);
INSERT INTO "cluster_agents" VALUES('ag3','cl0',2);
INSERT INTO "cluster_agents" VALUES('ag4','cl0',3);
CREATE TABLE clusters (
        id TEXT PRIMARY KEY,
        num_ilds INTEGER NOT NULL CHECK (num_ilds > 0),
        topology TEXT NOT NULL,
        gw_topology TEXT NOT NULL
    , checksum INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID
    ;
INSERT INTO "clusters" VALUES('cl0',1,'torus','looped',-1335259660339749078);
CREATE TABLE deployment (
            id TEXT NOT NULL,
            epoch INTEGER NOT NULL CHECK (epoch >= 0),
            complete_since INTEGER NOT NULL CHECK (complete_since >= 0)
        ) STRICT
        ;
INSERT INTO "deployment" VALUES('f6ff5ebb56650b13',1795828610,0);
CREATE TABLE devices (
        agent TEXT NOT NULL,
        ipu INTEGER NOT NULL,
        ip TEXT NOT NULL,
        server_port INTEGER NOT NULL,
        rdma_port INTEGER NOT NULL,
        device_id INTEGER NOT NULL,
        ipu_arch_id INTEGER NOT NULL,
        chip_id TEXT NOT NULL,
        gwsw_version TEXT NOT NULL,
        ipum_sw_version TEXT NOT NULL,
        ipuof_server_version TEXT NOT NULL,
        PRIMARY KEY (agent, ipu),
        FOREIGN KEY (agent, ipu) REFERENCES partition_ipus ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "devices" VALUES('ag1',0,'127.85.0.1',10100,10200,0,2,'79641a6b14bb428e','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag1',1,'127.85.0.1',10101,10201,1,2,'d76c3fb98bbe4d6c','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag1',2,'127.85.0.1',10102,10202,2,2,'3500001b96b1c4fe','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag1',3,'127.85.0.1',10103,10203,3,2,'b5661fb8799c3915','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag2',0,'127.85.0.2',10100,10200,0,2,'88ef0c2754fb5127','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag2',1,'127.85.0.2',10101,10201,1,2,'7702f91f6a708224','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag2',2,'127.85.0.2',10102,10202,2,2,'8ca21c98a3b25140','2.0.5','2.0.0','v1.3.3');
INSERT INTO "devices" VALUES('ag2',3,'127.85.0.2',10103,10203,3,2,'a6d40ec10ca4098d','2.0.5','2.0.0','v1.3.3');
CREATE TABLE partition_errors (
        partition TEXT NOT NULL REFERENCES partitions DEFERRABLE INITIALLY DEFERRED,
        position INTEGER NOT NULL,
        message TEXT NOT NULL,
        PRIMARY KEY (partition, position)
    ) STRICT, WITHOUT ROWID
    ;
CREATE TABLE partition_ipus (
        agent TEXT NOT NULL REFERENCES allocation_agents DEFERRABLE INITIALLY DEFERRED,
        ipu INTEGER NOT NULL CHECK (ipu BETWEEN 0 AND 3),
        partition TEXT NOT NULL REFERENCES partitions DEFERRABLE INITIALLY DEFERRED,
        segment INTEGER NOT NULL,
        routing_id INTEGER NOT NULL,
        PRIMARY KEY (agent, ipu),
        UNIQUE (partition, segment, routing_id)
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "partition_ipus" VALUES('ag1',0,'training',0,3);
INSERT INTO "partition_ipus" VALUES('ag1',1,'training',0,2);
INSERT INTO "partition_ipus" VALUES('ag1',2,'training',0,1);
INSERT INTO "partition_ipus" VALUES('ag1',3,'training',0,0);
INSERT INTO "partition_ipus" VALUES('ag2',0,'training',0,7);
INSERT INTO "partition_ipus" VALUES('ag2',1,'training',0,6);
INSERT INTO "partition_ipus" VALUES('ag2',2,'training',0,5);
INSERT INTO "partition_ipus" VALUES('ag2',3,'training',0,4);
CREATE TABLE partitions (
        id TEXT PRIMARY KEY,
        allocation TEXT NOT NULL REFERENCES allocations DEFERRABLE INITIALLY DEFERRED,
        routing INTEGER NOT NULL,
        gw_routing INTEGER NOT NULL,
        sync_type INTEGER NOT NULL,
        num_gcds INTEGER NOT NULL,
        num_replicas INTEGER NOT NULL,
        num_segments INTEGER NOT NULL,
        reconfigurable INTEGER NOT NULL,
        disable_auto_reset INTEGER NOT NULL,
        relocatable INTEGER NOT NULL,
        ready INTEGER NOT NULL,
        operation INTEGER NOT NULL,
        max_retries INTEGER NOT NULL,
        retries INTEGER NOT NULL,
        last_auto_reset REAL
    , checksum INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID
    ;
INSERT INTO "partitions" VALUES('training','team',1,0,1,1,1,1,0,0,0,2,1,3,0,NULL,5170913091482238465);
CREATE TABLE record_checksum (total INTEGER NOT NULL) STRICT;
INSERT INTO "record_checksum" VALUES(2944190998644223638);
CREATE TABLE revisions (revision INTEGER PRIMARY KEY, changes TEXT NOT NULL) STRICT;
INSERT INTO "revisions" VALUES(1795828607734,'[]');
INSERT INTO "revisions" VALUES(1795828607735,'[["agent","ag1",null],["agent","ag2",null],["agent","ag3",null],["agent","ag4",null],["cluster","cl0",null],["allocation","team",null]]');
INSERT INTO "revisions" VALUES(1795828607736,'[["user","alice",null]]');
INSERT INTO "revisions" VALUES(1795828607737,'[["partition","training",null],["allocation","team",["team"]]]');
INSERT INTO "revisions" VALUES(1795828607738,'[["partition","training",["team"]]]');
CREATE TABLE revoked_keys (
            id TEXT PRIMARY KEY,
            user TEXT NOT NULL,
            serial TEXT NOT NULL,
            not_after INTEGER NOT NULL,
            checksum INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID
        ;
CREATE TABLE user_allocations (
        user TEXT NOT NULL REFERENCES users DEFERRABLE INITIALLY DEFERRED,
        position INTEGER NOT NULL,
        allocation TEXT NOT NULL REFERENCES allocations DEFERRABLE INITIALLY DEFERRED,
        PRIMARY KEY (user, position),
        UNIQUE (user, allocation)
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "user_allocations" VALUES('alice',0,'team');
CREATE TABLE user_certificates (
            key TEXT PRIMARY KEY,
            user TEXT NOT NULL REFERENCES users DEFERRABLE INITIALLY DEFERRED,
            position INTEGER NOT NULL,
            serial TEXT NOT NULL,
            not_after INTEGER NOT NULL,
            revoked INTEGER NOT NULL,
            UNIQUE (user, position)
        ) STRICT, WITHOUT ROWID
        ;
CREATE TABLE users (
        id TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        key_hash TEXT NOT NULL,
        key_salt TEXT NOT NULL
    , checksum INTEGER NOT NULL DEFAULT 0, shared_certificate INTEGER NOT NULL DEFAULT 1, all_allocations INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID
    ;
INSERT INTO "users" VALUES('alice','user','ef828c772144b057fbf1fbc9b671379db6519191c155f06935c3d8d9579c02fe','420a056b00362a2d0ac38f33a7f29934',-2940712637924851383,0,0);
CREATE UNIQUE INDEX agents_endpoint ON agents (lower(host), port);
CREATE INDEX allocations_cluster ON allocations (cluster);
CREATE INDEX allocation_agents_allocation ON allocation_agents (allocation);
CREATE INDEX partitions_allocation ON partitions (allocation);
CREATE INDEX user_allocations_allocation ON user_allocations (allocation);
COMMIT;
