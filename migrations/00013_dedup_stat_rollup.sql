-- +goose Up

-- What dedup_stat forgets after some hours, summed up: the minutes for a week, hours
-- and days for 400 days, and one row per key for ever. Each minute adds to all four.
CREATE TABLE dedup_stat_rollup (
    span text NOT NULL CHECK (span IN ('minute', 'hour', 'day', 'ever')),
    LIKE dedup_stat INCLUDING DEFAULTS
) WITH (fillfactor = 80);

-- Where the span begins, in UTC; the epoch for 'ever'.
ALTER TABLE dedup_stat_rollup RENAME minute TO at;

-- In the order in which it is read: one group, one span, from an instant on.
ALTER TABLE dedup_stat_rollup ADD PRIMARY KEY (span, consumer_group, at, topic, partition);

-- Closed letters go by the time at which they were closed.
CREATE INDEX dead_letter_closed ON dead_letter (updated_at) WHERE state <> 'open';

-- What a letter was about, once it is gone: an action must not outlive its meaning.
ALTER TABLE letter_action
    ADD COLUMN event_id  uuid,
    ADD COLUMN topic     text,
    ADD COLUMN partition integer,
    ADD COLUMN "offset"  bigint;

-- +goose Down
ALTER TABLE letter_action DROP COLUMN "offset", DROP COLUMN partition, DROP COLUMN topic, DROP COLUMN event_id;
DROP INDEX dead_letter_closed;
INSERT INTO dedup_stat
SELECT (jsonb_populate_record(NULL::dedup_stat, to_jsonb(r) || jsonb_build_object('minute', r.at))).*
FROM dedup_stat_rollup AS r WHERE span = 'ever';
DROP TABLE dedup_stat_rollup;
