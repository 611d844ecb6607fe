/**
 * The grammar of connection URLs as libpq has it; what is refused is not repeated, because it may be a piece of the
 * password.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { isPostgresUrl, urlParts } from '../../../src/db/postgres/url-parts.ts';

function parts(text: string) {
  const { parameters, ...rest } = urlParts(text);
  return { ...rest, parameters: Object.fromEntries(parameters) };
}

const none = { user: undefined, password: undefined, database: undefined, parameters: {} };
const nowhere = [{ host: '', port: 5432 }];

// Examples of the manual of PostgreSQL, "Connection URIs".
const manual: readonly [string, ReturnType<typeof parts>][] = [
  ['postgresql://', { ...none, hosts: nowhere }],
  ['postgresql://localhost', { ...none, hosts: [{ host: 'localhost', port: 5432 }] }],
  ['postgresql://localhost:5433', { ...none, hosts: [{ host: 'localhost', port: 5433 }] }],
  ['postgresql://localhost/mydb', { ...none, hosts: [{ host: 'localhost', port: 5432 }], database: 'mydb' }],
  ['postgresql://user@localhost', { ...none, hosts: [{ host: 'localhost', port: 5432 }], user: 'user' }],
  [
    'postgresql://user:secret@localhost',
    { ...none, hosts: [{ host: 'localhost', port: 5432 }], user: 'user', password: 'secret' },
  ],
  [
    'postgresql://other@localhost/otherdb?connect_timeout=10&application_name=myapp',
    {
      ...none,
      hosts: [{ host: 'localhost', port: 5432 }],
      user: 'other',
      database: 'otherdb',
      parameters: { connect_timeout: '10', application_name: 'myapp' },
    },
  ],
  [
    'postgresql://host1:123,host2:456/somedb?target_session_attrs=any&application_name=myapp',
    {
      ...none,
      hosts: [
        { host: 'host1', port: 123 },
        { host: 'host2', port: 456 },
      ],
      database: 'somedb',
      parameters: { target_session_attrs: 'any', application_name: 'myapp' },
    },
  ],
  [
    'postgresql:///mydb?host=localhost&port=5433',
    { ...none, hosts: [{ host: 'localhost', port: 5433 }], database: 'mydb' },
  ],
  [
    'postgresql://[2001:db8::1234]/database',
    { ...none, hosts: [{ host: '2001:db8::1234', port: 5432 }], database: 'database' },
  ],
  [
    'postgresql:///dbname?host=/var/lib/postgresql',
    { ...none, hosts: [{ host: '/var/lib/postgresql', port: 5432 }], database: 'dbname' },
  ],
  [
    'postgresql://%2Fvar%2Flib%2Fpostgresql/dbname',
    { ...none, hosts: [{ host: '/var/lib/postgresql', port: 5432 }], database: 'dbname' },
  ],
  [
    'postgresql://user@localhost:5433/mydb?options=-c%20synchronous_commit%3Doff',
    {
      ...none,
      hosts: [{ host: 'localhost', port: 5433 }],
      user: 'user',
      database: 'mydb',
      parameters: { options: '-c synchronous_commit=off' },
    },
  ],
];

for (const [text, expected] of manual) {
  test(`${text} is parsed as in the manual`, () => assert.deepEqual(parts(text), expected));
}

test('parameters can replace URL parts, and one port applies to all hosts', () => {
  assert.deepEqual(parts('postgres://?host=a,b&port=6432&user=u&password=p%26&dbname=d%2Fe'), {
    hosts: [
      { host: 'a', port: 6432 },
      { host: 'b', port: 6432 },
    ],
    user: 'u',
    password: 'p&',
    database: 'd/e',
    parameters: {},
  });
});

test('a password may contain any percent-encoded character', () => {
  assert.equal(urlParts('postgres://u:%40%2F%3F%25%3A%C3%A9+@h/d').password, '@/?%:é+');
});

test('only URLs with a PostgreSQL scheme are accepted', () => {
  assert.ok(isPostgresUrl('PostgreSQL://h'));
  for (const other of ['mysql://h', 'postgres:/h', '/var/lib/vault.db', 'postgresqls://h']) {
    assert.equal(isPostgresUrl(other), false);
    assert.throws(() => urlParts(other), OperatorError);
  }
});

const secret = 's3cr';
const refused = [
  `postgres://u:${secret}@et@h/d`,
  `postgres://u:${secret}/et@h/d`,
  `postgres://u:12/${secret}@h/d`,
  `postgres://u:12?${secret}@h/d`,
  `postgres://u:12?${secret}=@h/d`,
  `postgres://u:${secret}?et@h/d`,
  `postgres://u:${secret}%zz@h/d`,
  `postgres://u:${secret}%00@h/d`,
  `postgres://u:${secret}@h/d%0a`,
  `postgres://u@h:${secret}/d`,
  `postgres://u:${secret}@h:0/d`,
  `postgres://u:${secret}@h:65536/d`,
  `postgres://u:${secret}@h:-1/d`,
  `postgres://u:${secret}@h/d/e`,
  `postgres://u:${secret}@h/d?sslmode=disable&sslmode=verify-full`,
  `postgres://u:${secret}@h/d?port=1,2`,
  `postgres://u:${secret}@h,i,j/d?port=1,2`,
  `postgres://u:${secret}@h/d?host`,
];

for (const text of refused) {
  test(`${text} is rejected without showing the password`, () => {
    assert.throws(
      () => urlParts(text),
      (error) => {
        assert.ok(error instanceof OperatorError);
        assert.ok(!`${error.message} ${error.hint}`.includes(secret));
        return true;
      },
    );
  });
}
