-- +goose Up

-- How far each partition is durable, where that is kept here and not left to Kafka
-- (OFFSET_STORE=postgres). Every batch writes it, in its own transaction.
CREATE TABLE consumer_offset (
    consumer_group text        NOT NULL,
    topic          text        NOT NULL,
    partition      integer     NOT NULL,
    "offset"       bigint      CHECK ("offset" >= 0),       -- to go on at; NULL: nothing was durable yet
    leader_epoch   integer     CHECK (leader_epoch >= 0),   -- of the record before it; NULL: not told
    metadata       text        NOT NULL,                    -- who took the partition, for people
    epoch          bigint      NOT NULL CHECK (epoch > 0),  -- raised when it is taken; every write compares it
    taken_at       timestamptz NOT NULL DEFAULT now(),
    moved_at       timestamptz CHECK ((moved_at IS NULL) = ("offset" IS NULL)),
    PRIMARY KEY (consumer_group, topic, partition)
-- A few rows, written all the time and never by an indexed column: each has a page
-- to itself, nearly, and its dead versions go without vacuum.
) WITH (fillfactor = 10);

-- +goose Down
DROP TABLE consumer_offset;
