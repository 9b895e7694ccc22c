-- +goose Up

-- What the latest turn of retention found and did, for every instance to show: one
-- row at most.
CREATE TABLE retention_turn (
    one          boolean     PRIMARY KEY DEFAULT true CHECK (one),
    finished_at  timestamptz NOT NULL,
    succeeded_at timestamptz, -- end of the latest turn without an error
    instance     text        NOT NULL,
    report       jsonb       NOT NULL
);

-- +goose Down
DROP TABLE retention_turn;
