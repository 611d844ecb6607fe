/** Connection URLs: defaults that verify the server, what the environment may say, and passwords that stay hidden. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { OperatorError } from '../../../src/base/operator-error.ts';
import {
  displayUrl,
  type Host,
  parseConnectionUrl,
  sslModeFor,
} from '../../../src/db/postgres/connection-url.ts';

function parse(text: string, environment: Record<string, string> = {}) {
  return parseConnectionUrl(text, { environment, home: '/home/vault' });
}

function modes(text: string, environment: Record<string, string> = {}): string[] {
  const url = parse(text, environment);
  return url.hosts.map((host) => sslModeFor(url, host));
}

const remote: Host = { host: 'db.example.com', port: 5432 };

test('a URL without parameters has the defaults, such as a 5 s connect timeout', () => {
  assert.deepEqual(parse('postgres://vault@db.example.com'), {
    hosts: [remote],
    user: 'vault',
    database: 'vault',
    password: undefined,
    passFile: '/home/vault/.pgpass',
    sslMode: undefined,
    sslRootCert: undefined,
    sslCert: undefined,
    sslKey: undefined,
    applicationName: 'vault',
    connectTimeoutMs: 5000,
    schema: 'public',
  });
});

test('a URL can set every supported parameter', () => {
  const query = [
    'sslmode=verify-ca&sslrootcert=/ca.crt&sslcert=/c.crt&sslkey=/c.key&application_name=node-1',
    'connect_timeout=3&schema=vault&passfile=/run/pgpass&target_session_attrs=read-write',
  ];
  const url = parse(`postgresql://u:p@a:1,b:2/d?${query.join('&')}`);
  assert.deepEqual(url.hosts, [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
  ]);
  assert.equal(url.password?.expose(), 'p');
  const { passFile, sslMode, sslRootCert, sslCert, sslKey, applicationName, connectTimeoutMs, schema } = url;
  assert.deepEqual(
    [passFile, sslMode, sslRootCert, sslCert, sslKey, applicationName, connectTimeoutMs, schema],
    ['/run/pgpass', 'verify-ca', '/ca.crt', '/c.crt', '/c.key', 'node-1', 3000, 'vault'],
  );
});

test('the default sslmode is verify-full for remote hosts, prefer for loopback, disable for sockets', () => {
  assert.deepEqual(modes('postgres://u@db.example.com,192.0.2.1,[2001:db8::1],127.0.0.1.example.com/d'), [
    ...['verify-full', 'verify-full', 'verify-full', 'verify-full'],
  ]);
  assert.deepEqual(modes('postgres://u@localhost,127.0.0.1,[::1],127.8.9.1/d'), [
    ...['prefer', 'prefer', 'prefer', 'prefer'],
  ]);
  assert.deepEqual(modes('postgres://u@localhost,db/d'), ['prefer', 'verify-full']);
  assert.deepEqual(modes('postgres://u@%2Frun%2Fpg,db/d'), ['disable', 'verify-full']);
  assert.deepEqual(modes('postgres://u@/d'), ['disable']);
});

test('sslmode in the URL overrides the default', () => {
  for (const mode of ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']) {
    assert.deepEqual(modes(`postgres://u@db/d?sslmode=${mode}`), [mode]);
  }
});

test('require with a CA verifies against the CA, as in libpq', () => {
  assert.deepEqual(modes('postgres://u@db/d?sslmode=require&sslrootcert=/ca.crt'), ['verify-ca']);
  assert.deepEqual(modes('postgres://u@db/d?sslmode=require', { PGSSLROOTCERT: '/ca.crt' }), ['verify-ca']);
});

test('PGSSLMODE may strengthen verification and weakens it only for loopback hosts', () => {
  assert.deepEqual(modes('postgres://u@db/d', { PGSSLMODE: 'verify-ca' }), ['verify-ca']);
  assert.deepEqual(modes('postgres://u@db/d', { PGSSLMODE: '' }), ['verify-full']);
  assert.deepEqual(modes('postgres://u@localhost/d', { PGSSLMODE: 'disable' }), ['disable']);
  assert.deepEqual(modes('postgres://u@db/d?sslmode=verify-full', { PGSSLMODE: 'disable' }), ['verify-full']);
  for (const mode of ['disable', 'allow', 'prefer', 'require']) {
    assert.throws(() => modes('postgres://u@db/d', { PGSSLMODE: mode }), {
      name: 'OperatorError',
      message: `PGSSLMODE=${mode} would not verify the PostgreSQL server`,
    });
  }
});

test('password, CA and client certificate come from the environment if the URL has none', () => {
  const environment = {
    PGPASSWORD: 'from-environment',
    PGPASSFILE: '/run/pgpass',
    PGSSLROOTCERT: '/ca.crt',
    PGSSLCERT: '/c.crt',
    PGSSLKEY: '/c.key',
    // Not read: an address beside the URL would be a surprise.
    PGHOST: 'elsewhere',
    PGOPTIONS: '-c synchronous_commit=off',
  };
  const url = parse('postgres://u@db/d', environment);
  assert.equal(url.password?.expose(), 'from-environment');
  assert.deepEqual(
    [url.passFile, url.sslRootCert, url.sslCert, url.sslKey, url.hosts[0]?.host],
    ['/run/pgpass', '/ca.crt', '/c.crt', '/c.key', 'db'],
  );
  assert.equal(parse('postgres://u:own@db/d', environment).password?.expose(), 'own');
  assert.equal(parse('postgres://u@db/d?sslrootcert=system', environment).sslRootCert, undefined);
  assert.equal(parseConnectionUrl('postgres://u@db/d', { environment: {} }).passFile, undefined);
});

const refused: readonly [string, RegExp][] = [
  ['postgres://db/d', /names no user/],
  ['postgres://u@db/d?foo=bar', /unknown parameter foo/],
  ['postgres://u@db/d?options=-c%20synchronous_commit%3Doff', /unknown parameter options/],
  ['postgres://u@db/d?target_session_attrs=read-only', /target_session_attrs/],
  ['postgres://u@db/d?target_session_attrs=standby', /target_session_attrs/],
  ['postgres://u@db/d?sslmode=no-verify', /unknown sslmode/],
  ['postgres://u@db/d?sslmode=require&sslrootcert=system', /weak sslmode/],
  ['postgres://u@db/d?sslcert=/c', /only one of sslcert and sslkey/],
  ['postgres://u@db/d?connect_timeout=0', /connect_timeout/],
  ['postgres://u@db/d?connect_timeout=1e9', /connect_timeout/],
  ['postgres://u@db/d?schema=pg_catalog', /invalid schema/],
  ['postgres://u@db/d?schema=a%22;drop', /invalid schema/],
  ['postgres://u@db/d?schema=', /invalid schema/],
  ['postgres://u@d b/d', /invalid host/],
  ['postgres://u@@abstract/d', /unexpected "@"/],
];

for (const [text, message] of refused) {
  test(`${text} is rejected`, () => {
    assert.throws(() => parse(text), OperatorError);
    assert.throws(() => parse(text), { message });
  });
}

test('the password shows neither in the display form nor in inspection', () => {
  const url = parse('postgres://u%2Fv:hidden@a:1,[::1],%2Frun/d?application_name=x');
  assert.equal(displayUrl(url), 'postgres://u%2Fv@a:1,[::1],%2Frun/d');
  assert.ok(!`${inspect(url)} ${JSON.stringify(url)}`.includes('hidden'));
});
