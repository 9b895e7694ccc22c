-- +goose Up

-- What operators did to dead letters: who, when, why, and what came of it.
-- Append-only.
CREATE TABLE letter_action (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    letter_id bigint      NOT NULL,
    action    text        NOT NULL CHECK (action IN ('replay', 'discard')),
    actor     text        NOT NULL CHECK (length(actor) BETWEEN 1 AND 100),
    reason    text        NOT NULL CHECK (length(reason) <= 500),
    outcome   text        CHECK (outcome IN ('not_charged', 'charged', 'unknown')),
    result    text        NOT NULL,
    at        timestamptz NOT NULL,
    CHECK (action = 'replay' OR reason <> ''),
    CHECK (action = 'discard' OR outcome IS NULL)
);

CREATE INDEX letter_action_letter ON letter_action (letter_id, id);

-- When an operator last sent the charge round again: from then on it is retried
-- for a whole horizon, and its letter is resolved with it.
ALTER TABLE charge_intent ADD COLUMN replayed_at timestamptz;

-- What waits for an operator is few among what ever did.
CREATE INDEX dead_letter_open ON dead_letter (id) WHERE state = 'open';

-- +goose Down
DROP INDEX dead_letter_open;
ALTER TABLE charge_intent DROP COLUMN replayed_at;
DROP TABLE letter_action;
