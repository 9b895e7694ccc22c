-- +goose Up

-- Exact counters, written in the transaction that makes them true.
CREATE TABLE dedup_stat (
    consumer_group  text        NOT NULL,
    topic           text        NOT NULL,
    partition       integer     NOT NULL,
    minute          timestamptz NOT NULL,
    received        bigint      NOT NULL,
    processed       bigint      NOT NULL,
    recovered       bigint      NOT NULL,
    redelivered     bigint      NOT NULL,
    republished     bigint      NOT NULL,
    conflicting     bigint      NOT NULL,
    invalid         bigint      NOT NULL,
    captured        bigint      NOT NULL,
    declined        bigint      NOT NULL,
    duplicate_order bigint      NOT NULL,
    discarded       bigint      NOT NULL,
    non_v7          bigint      NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition, minute)
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE dedup_stat;
