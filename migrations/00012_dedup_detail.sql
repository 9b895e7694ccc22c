-- +goose Up

-- What explains the counters. How long after the first sighting of its event a
-- duplicate came: each column counts what came within its bound and beyond that of
-- the one before; all of them together count the duplicates. Forgotten: the first
-- sighting was in processed_event no more, and the event is known by its charge or
-- its intent. And the processed events whose id is ahead of our clock.
ALTER TABLE dedup_stat
    ADD COLUMN delay_1m        bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_10m       bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_1h        bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_6h        bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_1d        bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_3d        bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_7d        bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_30d       bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_longer    bigint NOT NULL DEFAULT 0,
    ADD COLUMN delay_forgotten bigint NOT NULL DEFAULT 0,
    ADD COLUMN id_ahead        bigint NOT NULL DEFAULT 0,
    -- The largest lead, in milliseconds: combined by greatest(), not by a sum.
    ADD COLUMN id_ahead_max_ms bigint NOT NULL DEFAULT 0;

-- The latest duplicates with their coordinates. Append-only; at most 64 of one
-- transaction, so that under a flood it is a sample. The counters are exact.
CREATE TABLE duplicate_log (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seen_at         timestamptz NOT NULL,
    consumer_group  text        NOT NULL,
    event_id        uuid        NOT NULL,
    kind            text        NOT NULL CHECK (kind IN ('redelivered', 'republished', 'conflicting')),
    topic           text        NOT NULL,
    partition       integer     NOT NULL,
    "offset"        bigint      NOT NULL,
    -- The record that it repeats.
    first_topic     text,
    first_partition integer,
    first_offset    bigint,
    first_seen_at   timestamptz, -- NULL where processed_event has forgotten it
    CHECK (num_nulls(first_topic, first_partition, first_offset) IN (0, 3))
);

CREATE INDEX duplicate_log_event ON duplicate_log (event_id, id);

-- What the intent of a charge knew: when it was committed, and when something may
-- first have been sent. NULL where there was no intent or nothing was sent, and in
-- rows from before.
ALTER TABLE charge
    ADD COLUMN intended_at      timestamptz,
    ADD COLUMN first_attempt_at timestamptz;

-- +goose Down
ALTER TABLE charge DROP COLUMN first_attempt_at, DROP COLUMN intended_at;
DROP TABLE duplicate_log;
ALTER TABLE dedup_stat
    DROP COLUMN id_ahead_max_ms, DROP COLUMN id_ahead, DROP COLUMN delay_forgotten, DROP COLUMN delay_longer,
    DROP COLUMN delay_30d, DROP COLUMN delay_7d, DROP COLUMN delay_3d, DROP COLUMN delay_1d, DROP COLUMN delay_6h,
    DROP COLUMN delay_1h, DROP COLUMN delay_10m, DROP COLUMN delay_1m;
