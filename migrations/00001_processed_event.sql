-- +goose Up

-- One row per valid event and consumer group: the claim. Partitioned by the
-- event id, since only then is the primary key unique over all partitions.
CREATE TABLE processed_event (
    event_id         uuid        NOT NULL,
    consumer_group   text        NOT NULL,
    processed_at     timestamptz NOT NULL DEFAULT now(),
    source_topic     text        NOT NULL,
    source_partition integer     NOT NULL,
    source_offset    bigint      NOT NULL,
    fingerprint      bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    PRIMARY KEY (event_id, consumer_group)
) PARTITION BY RANGE (event_id);

CREATE INDEX processed_event_processed_at ON processed_event (processed_at);

CREATE TABLE processed_event_default PARTITION OF processed_event DEFAULT;

-- +goose Down
DROP TABLE processed_event;
