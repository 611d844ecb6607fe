/** What a PostgreSQL server must offer, or nothing that the vault acknowledges would be safe on it. */
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';

/** What a new connection asks first. */
export type ServerState = {
  /** As in server_version_num: 150018 is 15.18. */
  readonly version: number;
  readonly encoding: string;
  readonly synchronousCommit: string;
  /** A standby, or a server that is being restored. */
  readonly isInRecovery: boolean;
  /** default_transaction_read_only. */
  readonly isReadOnly: boolean;
};

export const oldestVersion = 13;

/** An answer to the query: without a type for truth, as SQLite. */
export type ServerStateRow = {
  readonly [Field in keyof ServerState]: ServerState[Field] extends boolean ? number : ServerState[Field];
};

/** The query that answers; its columns are the fields. */
export const serverStateQuery = `select
  current_setting('server_version_num')::int as "version",
  current_setting('server_encoding') as "encoding",
  current_setting('synchronous_commit') as "synchronousCommit",
  pg_is_in_recovery() as "isInRecovery",
  current_setting('default_transaction_read_only')::bool as "isReadOnly"`;

/** What the row says. */
export function serverStateIn(row: ServerStateRow): ServerState {
  const { version, encoding, synchronousCommit, isInRecovery, isReadOnly } = row;
  return {
    ...{ version, encoding, synchronousCommit },
    isInRecovery: isInRecovery === 1,
    isReadOnly: isReadOnly === 1,
  };
}

/** Throws StorageError if the server takes no writes now, OperatorError if the vault cannot use it. */
export function requireSafeServer(state: ServerState, place: string): void {
  const { version, encoding, synchronousCommit } = state;
  if (version < oldestVersion * 10_000) {
    throw new OperatorError(`PostgreSQL ${Math.floor(version / 10_000)} is too old (${place})`, {
      hint: `Use PostgreSQL ${oldestVersion} or newer.`,
    });
  }
  if (encoding !== 'UTF8') {
    throw new OperatorError(`the database has the encoding ${encoding}, not UTF8 (${place})`, {
      hint: 'Create one: createdb --owner=USER --encoding=UTF8 --template=template0 NAME',
    });
  }
  if (synchronousCommit === 'off' || synchronousCommit === 'local') {
    throw new OperatorError(`PostgreSQL has synchronous_commit = ${synchronousCommit} (${place})`, {
      hint: [
        'The vault would lose what it has acknowledged.',
        'Fix, as the role of the vault: alter role current_user set synchronous_commit = on',
      ].join('\n'),
    });
  }
  if (state.isInRecovery || state.isReadOnly) {
    throw new StorageError(`the PostgreSQL server is read-only (${place})`, {
      hint: 'It is a standby. Name all servers in the database URL, or let it point to the primary.',
    });
  }
}
