-- +goose Up

-- One row per unfinished charge: the lock that survives the process, and the
-- evidence that a charge may have happened.
CREATE TABLE charge_intent (
    event_id         uuid        PRIMARY KEY,
    order_id         bigint      NOT NULL CHECK (order_id > 0),
    request_hash     bytea       NOT NULL CHECK (octet_length(request_hash) = 32),
    fingerprint      bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    state            text        NOT NULL CHECK (state IN ('waiting', 'calling', 'unknown', 'answered', 'parked', 'held')),
    claimed          boolean     NOT NULL,
    maybe_sent       boolean     NOT NULL,
    token            uuid        NOT NULL,
    owner            text        NOT NULL,
    lease_until      timestamptz,
    due_at           timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    first_attempt_at timestamptz,
    attempts         integer     NOT NULL CHECK (attempts >= 0),
    answer           jsonb,
    last_error       text        NOT NULL,
    consumer_group   text        NOT NULL,
    source_topic     text        NOT NULL,
    source_partition integer     NOT NULL,
    source_offset    bigint      NOT NULL,
    traceparent      text        NOT NULL,
    tracestate       text        NOT NULL,
    record           bytea       NOT NULL,
    record_key       bytea,
    record_headers   bytea,
    record_timestamp timestamptz NOT NULL,
    -- A lease has an end and is due then, so that a crash orphans nothing.
    CHECK ((state = 'calling') = (lease_until IS NOT NULL)),
    CHECK (state <> 'calling' OR due_at = lease_until),
    CHECK (state <> 'answered' OR answer IS NOT NULL),
    -- What may have been sent is never called waiting or held, and has a first attempt.
    CHECK (state NOT IN ('waiting', 'held') OR NOT maybe_sent),
    CHECK (state NOT IN ('unknown', 'parked') OR maybe_sent),
    CHECK (NOT maybe_sent OR first_attempt_at IS NOT NULL)
);

-- The claim on the order.
CREATE UNIQUE INDEX charge_intent_claims_order ON charge_intent (order_id)
    WHERE state IN ('calling', 'unknown', 'answered', 'parked');

-- What the retry worker looks for.
CREATE INDEX charge_intent_due ON charge_intent (due_at)
    WHERE claimed AND state IN ('waiting', 'calling', 'unknown', 'answered');

-- Rows live for the length of a call: most of them are never seen by vacuum.
ALTER TABLE charge_intent SET (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, fillfactor = 80);

-- +goose Down
DROP TABLE charge_intent;
