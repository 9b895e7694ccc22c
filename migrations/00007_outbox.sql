-- +goose Up

-- What is to be published, appended by the transaction that makes it true. Nothing
-- is updated or deleted row by row: a reader follows by (xid, id), and slots of six
-- hours are emptied whole, a day after they were published. A slot comes round
-- again after 36 hours.
CREATE TABLE outbox (
    id         bigint      GENERATED ALWAYS AS IDENTITY,
    -- The transaction that appended it: once it is older than every open one, no row
    -- can come before it any more.
    xid        xid8        NOT NULL DEFAULT pg_current_xact_id(),
    slot       smallint    NOT NULL DEFAULT (floor(extract(epoch FROM now()) / 21600)::bigint % 6)::smallint,
    created_at timestamptz NOT NULL DEFAULT now(),
    kind       text        NOT NULL CHECK (kind IN ('event', 'dead_letter')),
    key        bytea,
    value      bytea,
    headers    bytea
) PARTITION BY LIST (slot);

-- No vacuum: nothing dies in them but by TRUNCATE.
CREATE TABLE outbox_0 PARTITION OF outbox FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE TABLE outbox_2 PARTITION OF outbox FOR VALUES IN (2) WITH (autovacuum_enabled = false);
CREATE TABLE outbox_3 PARTITION OF outbox FOR VALUES IN (3) WITH (autovacuum_enabled = false);
CREATE TABLE outbox_4 PARTITION OF outbox FOR VALUES IN (4) WITH (autovacuum_enabled = false);
CREATE TABLE outbox_5 PARTITION OF outbox FOR VALUES IN (5) WITH (autovacuum_enabled = false);

CREATE INDEX outbox_xid_id ON outbox (xid, id);

-- Everything up to here is published. One row; epoch is raised whenever another
-- reader takes over.
CREATE TABLE outbox_cursor (
    one      boolean     GENERATED ALWAYS AS (true) STORED PRIMARY KEY,
    xid      xid8        NOT NULL,
    id       bigint      NOT NULL,
    epoch    bigint      NOT NULL,
    moved_at timestamptz NOT NULL
) WITH (fillfactor = 10);
INSERT INTO outbox_cursor (xid, id, epoch, moved_at) VALUES ('0', 0, 0, now());

-- When a row of each slot was last published, to about a minute.
CREATE TABLE outbox_slot (
    slot         smallint    PRIMARY KEY,
    published_at timestamptz NOT NULL
) WITH (fillfactor = 10);
INSERT INTO outbox_slot (slot, published_at) SELECT s, now() FROM generate_series(0, 5) AS s;

-- What the brokers will not take, passed over, with everything needed to append it
-- again once the reason is gone:
--   WITH again AS (DELETE FROM outbox_refused WHERE … RETURNING kind, key, value, headers)
--   INSERT INTO outbox (kind, key, value, headers) SELECT * FROM again;
CREATE TABLE outbox_refused (
    xid        xid8        NOT NULL,
    id         bigint      NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT now(),
    topic      text        NOT NULL,
    reason     text        NOT NULL,
    kind       text        NOT NULL,
    key        bytea,
    value      bytea,
    headers    bytea,
    PRIMARY KEY (xid, id)
);

-- +goose Down
DROP TABLE outbox_refused;
DROP TABLE outbox_slot;
DROP TABLE outbox_cursor;
DROP TABLE outbox;
