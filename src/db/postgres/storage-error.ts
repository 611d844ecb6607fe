/** What PostgreSQL, PgBouncer and the network between report about their surroundings, in words for the operator. */
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { movedHint, movedSentence } from '../schema/moved-vault.ts';

type Sentence = { readonly codes: RegExp; readonly message: string; readonly hint: string };

/** StorageError where retrying may help. */
type Kind = typeof OperatorError;

/** Retrying helps with none of these: a setting or a right is wrong. */
const permanent: readonly Sentence[] = [
  {
    codes: /^28P01$/,
    message: 'PostgreSQL refused the password',
    hint: 'Check the user of the database URL and its password (in the password file, PGPASSWORD, .pgpass or the URL).',
  },
  {
    codes: /^28/,
    message: 'PostgreSQL refused the connection',
    hint: 'Check that the role exists and may log in, and that pg_hba.conf lets it in from this host, with TLS or without.',
  },
  {
    codes: /^3D000$/,
    message: 'the database does not exist',
    hint: 'Create it (createdb --owner=USER NAME), or correct the database URL.',
  },
  {
    codes: /^42501$/,
    message: 'PostgreSQL denied permission',
    hint: "Make the vault's role the owner of its database, or grant it usage and create on the schema.",
  },
];

const passing: readonly Sentence[] = [
  // Raised by the triggers of a database whose vault was moved (whole-database.ts).
  { codes: /^55000$/, message: movedSentence, hint: movedHint },
  {
    codes: /^(57P01|57P02|57P03|57P05)$/,
    message: 'PostgreSQL is starting or stopping',
    hint: 'Retry in a moment.',
  },
  {
    codes: /^25006$/,
    message: 'the PostgreSQL server is read-only',
    hint: 'It is a standby or was one until now. Name all servers in the database URL, or let it point to the primary.',
  },
  {
    codes: /^(57014|25P04)$/,
    message: 'PostgreSQL canceled a statement that took too long',
    hint: 'Check the load of the database server.',
  },
  {
    codes: /^25P03$/,
    message: 'PostgreSQL ended a transaction that was idle for too long',
    hint: 'This process stood still, or is overloaded. Nothing was changed.',
  },
  {
    codes: /^(55P03|40P01|40001)$/,
    message: 'another transaction holds a lock in the database',
    hint: 'Retry in a moment. If the error persists, find the session that blocks others in pg_stat_activity; one that waits for SyncRep waits for a standby.',
  },
  {
    codes: /^53300$/,
    message: 'PostgreSQL accepts no more connections',
    hint: 'Raise max_connections, or lower the number of connections of each node.',
  },
  {
    codes: /^53100$/,
    message: 'the disk of the PostgreSQL server is full',
    hint: 'Free some space on the server. Nothing was changed or lost.',
  },
  { codes: /^53/, message: 'PostgreSQL has run out of resources', hint: 'See the log of the server.' },
  {
    codes: /^(58|XX001$|XX002$)/,
    message: 'PostgreSQL failed to read or write its files',
    hint: 'See the log of the server, and its kernel log.',
  },
  {
    codes: /^(0A000|26000)$/,
    message: 'a prepared statement is no longer valid',
    hint: 'Retry. The schema was migrated meanwhile, or a pooler moved the session.',
  },
  {
    codes: /^08/,
    message: 'the connection to PostgreSQL failed',
    hint: 'See the log of the server and, if there is one, of the pooler in front of it.',
  },
];

/** Messages of the library `pg`, which have no codes. */
const ofLibrary: readonly (Omit<Sentence, 'codes'> & { readonly text: RegExp; readonly kind: Kind })[] = [
  {
    text: /^(Connection terminated|Client (has encountered|was closed))/,
    kind: StorageError,
    message: 'the connection to PostgreSQL was lost',
    hint: 'Retry in a moment. If the error persists, see the log of the server.',
  },
  {
    text: /^timeout expired$/,
    kind: StorageError,
    message: 'PostgreSQL did not answer in time',
    hint: 'Check the host of the database URL, the network, and firewalls.',
  },
  {
    text: /^The server does not support SSL connections$/,
    kind: OperatorError,
    message: 'PostgreSQL does not offer TLS',
    hint: 'Set "ssl = on" on the server. Without TLS (?sslmode=disable), keys and passwords cross the network in the open.',
  },
  {
    text: /^There was an error establishing an SSL connection$/,
    kind: StorageError,
    message: 'what answers is not PostgreSQL',
    hint: 'Check host and port of the database URL.',
  },
  {
    text: /client password must be a (?:non-empty )?string/,
    kind: OperatorError,
    message: 'PostgreSQL asks for a password',
    hint: 'Put it into a file of mode 0600 and name the file, or use PGPASSWORD or .pgpass.',
  },
  {
    text: /^SASL/,
    kind: OperatorError,
    message: 'PostgreSQL and the vault failed to agree on authentication',
    hint: 'The server must support SCRAM-SHA-256 (password_encryption).',
  },
];

const network = /^(E[A-Z]{3,}|EAI_[A-Z]+|ERR_SSL_\w+|ERR_STREAM_\w+|ERR_SOCKET_\w+)$/;
const untrusted = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|INVALID_|HOSTNAME_MISMATCH)/;
const prepared = /cached plan must not change result type/;

/**
 * A StorageError for what reports on the surroundings of the database, an OperatorError where no retry helps; other
 * errors are bugs or violated constraints, and returned unchanged. `place` is the server, for people.
 */
export function storageErrorFrom(error: unknown, place: string): unknown {
  if (error instanceof OperatorError || !(error instanceof Error)) return error;
  const code = codeOf(error);
  const setting = permanent.find(({ codes }) => codes.test(code));
  if (setting !== undefined) return sentence(OperatorError, setting, `${place}, ${code}`, error);
  if (untrusted.test(code)) {
    const message = `cannot trust the PostgreSQL server (${place}): ${describeSystemError(error)}`;
    const hint =
      "Name the file with the certificate of the server's CA in the database URL (?sslrootcert=FILE).";
    return new OperatorError(message, { hint, cause: error });
  }
  const state = passing.find(({ codes }) => codes.test(code));
  // Some codes have more than one reason.
  const isOther =
    (code === '0A000' && !prepared.test(error.message)) ||
    (code === '55000' && error.message !== movedSentence);
  if (state !== undefined && !isOther) {
    return sentence(StorageError, state, `${place}, ${code}`, error);
  }
  if (network.test(code)) {
    const message = `cannot reach PostgreSQL (${place}): ${describeSystemError(error)}`;
    const hint = 'Check that the server runs, and the host and port of the database URL.';
    return new StorageError(message, { hint, cause: error });
  }
  const known = ofLibrary.find(({ text }) => text.test(error.message));
  return known === undefined ? error : sentence(known.kind, known, place, error);
}

/** Whether the connection that reported the error is of no more use, but a new one may be. */
export function endsConnection(error: unknown): boolean {
  const cause = originOf(error);
  const code = codeOf(cause);
  if (/^(08|57P0|25P03$|25P04$|25006$|26000$|XX)/.test(code) || network.test(code)) return true;
  if (code === '0A000') return prepared.test(String((cause as Error).message));
  const message = String((cause as Error | null)?.message);
  return ofLibrary.some(({ text }) => text.test(message));
}

/** Whether another attempt would fail in the same way until a person changes something. */
export function isPermanent(error: unknown): boolean {
  return error instanceof OperatorError && !(error instanceof StorageError);
}

/** What the server or the network reported, below the words for the operator. */
function originOf(error: unknown): unknown {
  return error instanceof OperatorError && error.cause !== undefined ? error.cause : error;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

function sentence(
  StatedError: Kind,
  { message, hint }: { readonly message: string; readonly hint: string },
  place: string,
  cause: unknown,
): OperatorError {
  return new StatedError(`${message} (${place})`, { hint, cause });
}
