-- +goose Up

-- Final results only, written once, kept for ever: the business record.
CREATE TABLE charge (
    event_id           uuid        PRIMARY KEY,
    order_id           bigint      NOT NULL CHECK (order_id > 0),
    customer_id        bigint      NOT NULL CHECK (customer_id > 0),
    amount             numeric     NOT NULL CHECK (amount > 0),
    currency           text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    status             text        NOT NULL CHECK (status IN ('captured', 'declined', 'duplicate_order', 'discarded')),
    provider_charge_id text        CHECK (length(provider_charge_id) BETWEEN 1 AND 255),
    decline_code       text        CHECK (length(decline_code) BETWEEN 1 AND 255),
    attempts           integer     NOT NULL CHECK (attempts >= 0),
    claims_order       boolean     NOT NULL,
    occurred_at        timestamptz NOT NULL,
    settled_at         timestamptz NOT NULL,
    fingerprint        bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    source_topic       text        NOT NULL,
    source_partition   integer     NOT NULL,
    source_offset      bigint      NOT NULL,
    CHECK (status <> 'captured' OR claims_order),
    CHECK (status IN ('captured', 'discarded') OR NOT claims_order)
);

-- At most one capture per order.
CREATE UNIQUE INDEX charge_claims_order ON charge (order_id) WHERE claims_order;
CREATE INDEX charge_order_id ON charge (order_id);
CREATE INDEX charge_settled_at ON charge (settled_at DESC, event_id DESC);

-- +goose Down
DROP TABLE charge;
