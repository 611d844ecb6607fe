/** What PostgreSQL and the network report becomes a sentence; violated constraints and bugs stay what they are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { StorageError } from '../../../src/base/storage-error.ts';
import { endsConnection, isPermanent, storageErrorFrom } from '../../../src/db/postgres/storage-error.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';

function failure(code: string | undefined, message = 'text of the server'): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

/** Code or message, the beginning of the sentence, and whether the connection is of no more use. */
const passing: readonly [string, RegExp, boolean][] = [
  ['57P01', /^PostgreSQL is starting or stopping \(db:1, 57P01\)$/, true],
  ['57P03', /^PostgreSQL is starting or stopping/, true],
  ['25006', /is read-only/, true],
  ['57014', /canceled a statement/, false],
  ['25P03', /idle for too long/, true],
  ['55P03', /holds a lock/, false],
  ['40P01', /holds a lock/, false],
  ['40001', /holds a lock/, false],
  ['53300', /no more connections/, false],
  ['53100', /disk of the PostgreSQL server is full/, false],
  ['53200', /run out of resources/, false],
  ['58030', /failed to read or write its files/, false],
  ['XX001', /failed to read or write its files/, true],
  ['08P01', /^the connection to PostgreSQL failed/, true],
  ['26000', /prepared statement/, true],
  ['ECONNREFUSED', /^cannot reach PostgreSQL \(db:1\): connection refused$/, true],
  ['ECONNRESET', /connection reset/, true],
  ['ENOENT', /no such file/, true],
  ['EAI_AGAIN', /DNS lookup failed/, true],
];

for (const [code, message, ends] of passing) {
  test(`${code} is a storage error: ${message.source}`, () => {
    const cause = failure(code);
    const error = storageErrorFrom(cause, 'db:1');
    assert.ok(error instanceof StorageError);
    assert.match(error.message, message);
    assert.ok(error.hint);
    assert.equal(error.cause, cause);
    assert.deepEqual([endsConnection(cause), endsConnection(error), isPermanent(error)], [ends, ends, false]);
  });
}

const lasting: readonly [string, RegExp][] = [
  ['28P01', /^PostgreSQL refused the password \(db:1, 28P01\)$/],
  ['28000', /^PostgreSQL refused the connection/],
  ['3D000', /database does not exist/],
  ['42501', /denied permission/],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', /^cannot trust the PostgreSQL server \(db:1\): self-signed certificate$/],
  ['CERT_HAS_EXPIRED', /certificate has expired/],
];

for (const [code, message] of lasting) {
  test(`${code} is an operator error: ${message.source}`, () => {
    const error = storageErrorFrom(failure(code), 'db:1');
    assert.ok(error instanceof OperatorError);
    assert.match(error.message, message);
    assert.ok(error.hint);
    assert.equal(isPermanent(error), true);
  });
}

const ofLibrary: readonly [string, RegExp, typeof OperatorError][] = [
  ['Connection terminated unexpectedly', /connection to PostgreSQL was lost/, StorageError],
  ['Client has encountered a connection error and is not queryable', /was lost/, StorageError],
  ['timeout expired', /did not answer in time/, StorageError],
  ['The server does not support SSL connections', /does not offer TLS/, OperatorError],
  ['There was an error establishing an SSL connection', /not PostgreSQL/, StorageError],
  [
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string',
    /asks for a password/,
    OperatorError,
  ],
  ['SASL: Only mechanism(s) SCRAM-SHA-256 are supported', /agree on authentication/, OperatorError],
];

for (const [text, message, Kind] of ofLibrary) {
  test(`the pg error "${text}" becomes a storage or operator error`, () => {
    const error = storageErrorFrom(failure(undefined, text), 'db:1');
    assert.ok(error instanceof Kind);
    assert.match(error.message, message);
    assert.equal(isPermanent(error), Kind === OperatorError);
    assert.equal(endsConnection(failure(undefined, text)), true);
  });
}

test('an invalid cached plan is a storage error; another 0A000 error is returned unchanged', () => {
  const stale = failure('0A000', 'cached plan must not change result type');
  assert.ok(storageErrorFrom(stale, 'db:1') instanceof StorageError);
  assert.equal(endsConnection(storageErrorFrom(stale, 'db:1')), true);
  const other = failure('0A000', 'cannot do that');
  assert.equal(storageErrorFrom(other, 'db:1'), other);
  assert.equal(endsConnection(other), false);
});

test('constraint violations, bugs and values that are not errors are returned unchanged', async (t) => {
  for (const error of [
    failure('42703'),
    failure('42601'),
    failure('22P02'),
    new TypeError('x'),
    undefined,
    'text',
  ]) {
    assert.equal(storageErrorFrom(error, 'db:1'), error);
    assert.equal(endsConnection(error), false);
  }
  const known = new StorageError('said before');
  assert.equal(storageErrorFrom(known, 'db:1'), known);
  await t.test('as a real server reports them', needsPostgres(), async () => {
    const server = await postgresServer();
    const statements = ['do $$ begin raise unique_violation; end $$', 'select nonsense', 'select 1/0'];
    for (const statement of statements) {
      const error = await server.query(statement).catch((one: unknown) => one);
      assert.ok(error instanceof Error);
      assert.equal(storageErrorFrom(error, 'db:1'), error);
    }
  });
});
