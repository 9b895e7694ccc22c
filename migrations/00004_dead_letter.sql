-- +goose Up

-- Records that cannot be finished without an operator, with their bytes as they came.
CREATE TABLE dead_letter (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic            text        NOT NULL,
    partition        integer     NOT NULL,
    "offset"         bigint      NOT NULL,
    consumer_group   text        NOT NULL,
    record_timestamp timestamptz NOT NULL,
    key              bytea,
    value            bytea,
    headers          bytea,
    reason           text        NOT NULL,
    detail           text        NOT NULL,
    state            text        NOT NULL CHECK (state IN ('open', 'replayed', 'discarded', 'resolved')),
    event_id         uuid,
    order_id         bigint,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    UNIQUE (topic, partition, "offset")
);

CREATE INDEX dead_letter_event_id ON dead_letter (event_id) WHERE event_id IS NOT NULL;

-- +goose Down
DROP TABLE dead_letter;
