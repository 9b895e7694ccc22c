-- +goose Up

-- What the service accepts is below this. NaN and infinity are not: to PostgreSQL
-- they are larger than every number. NOT VALID, since the rows that are there are
-- history, and reading them all would keep the flow waiting.
ALTER TABLE charge ADD CONSTRAINT charge_amount_bounded CHECK (amount < 1000000000000000) NOT VALID;

-- Most intents are never updated, and those that are change what indexes are made
-- of, so that room on their page is of no use to them. Vacuum hands out the space
-- of ended ones again, without pausing: the more often the smaller the table.
ALTER TABLE charge_intent SET (fillfactor = 100, autovacuum_vacuum_cost_delay = 0);

-- +goose Down
ALTER TABLE charge_intent SET (fillfactor = 80);
ALTER TABLE charge_intent RESET (autovacuum_vacuum_cost_delay);
ALTER TABLE charge DROP CONSTRAINT charge_amount_bounded;
