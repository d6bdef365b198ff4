-- Rows guarded by the fencing token: a transaction says with which term it
-- acts, and fails if a later term has written before.
--
--   BEGIN;
--   SELECT fence('payments', 7);
--   INSERT INTO ...;
--   COMMIT;
--
-- fence() takes a lock on the election's row until the end of the transaction.
-- So a writer of an old term either commits before the first one of the new
-- term begins, or fails: their writes never mix.

CREATE TABLE IF NOT EXISTS fences (
    election text PRIMARY KEY,
    term     bigint NOT NULL
);

CREATE OR REPLACE FUNCTION fence(of_election text, with_term bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    INSERT INTO fences AS f (election, term) VALUES (of_election, with_term)
    ON CONFLICT (election) DO UPDATE SET term = greatest(f.term, with_term)
    RETURNING term INTO newest;
    IF newest > with_term THEN
        RAISE EXCEPTION 'term % of % has ended: term % has written', with_term, of_election, newest
            USING ERRCODE = 'object_not_in_prerequisite_state'; -- not to be retried
    END IF;
END
$$;

CREATE TABLE IF NOT EXISTS payouts (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    term bigint NOT NULL,
    note text NOT NULL
);
