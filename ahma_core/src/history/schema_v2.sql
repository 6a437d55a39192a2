-- What a server says of itself, as JSON: its client, its tools, its sandbox.
ALTER TABLE servers ADD COLUMN facts TEXT;

-- What operations used while they ran, as JSON.
CREATE TABLE usages (
    number  INTEGER PRIMARY KEY REFERENCES operations ON DELETE CASCADE,
    samples TEXT NOT NULL
);

-- What went on in the last minutes.
CREATE INDEX operations_by_end ON operations (ended_at);
