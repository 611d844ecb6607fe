/**
 * Two servers on one data directory, as when somebody starts a second one by hand: they share the database, so
 * that nothing is answered by one that is not true at the other, and nothing is renewed twice.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { commandLine } from '../harness/processes/command-line.ts';
import { freePort } from '../harness/processes/port.ts';
import { type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';

const perServer = 200;

async function download({ url }: RunningVault, key: string, file = 'fullchain.pem'): Promise<Response> {
  const response = await fetch(`${url}/api/v1/certificates/web/${file}`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  await response.arrayBuffer();
  return response;
}

/** Whether the database says that a server has it open. */
function isServed(data: string): boolean {
  const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  try {
    return database.prepare("select 1 from settings where key = 'served-since'").get() !== undefined;
  } finally {
    database.close();
  }
}

/** Waits for the end of a renewal. */
async function succeeded({ url }: RunningVault, key: string, id: number): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/api/v1/certificates/web/renewals/${id}`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    const { status } = (await response.json()) as { status: string };
    if (status === 'succeeded') return;
    assert.match(status, /^(queued|running)$/);
  }
}

test('two servers on one data directory record every download and apply changes by each other immediately', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name', 'web', '--domain', 'www.example.com');
  const made = await line.done(
    ...['api-key', 'create', '--name', 'www', '--certificate', 'web'],
    ...['--scope', 'certificates:read', '--scope', 'renewals:trigger'],
  );
  const key = made.stdout.trim();
  const servers = await Promise.all([serve(t, line.data), serve(t, line.data)]);
  const [one, two] = servers;

  const answers = await Promise.all(
    servers.flatMap((server) => Array.from({ length: perServer }, () => download(server, key))),
  );
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const ids = answers.map(({ headers }) => headers.get('x-request-id') ?? '');

  const asked = await Promise.all(
    servers.map(({ url }) =>
      fetch(`${url}/api/v1/certificates/web/renew`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}` },
      }),
    ),
  );
  const renewals = await Promise.all(asked.map((answer) => answer.json() as Promise<{ id: number }>));
  assert.deepEqual(
    asked.map(({ status }) => status),
    [202, 202],
  );
  // The second may come when the first has ended: each is carried out once, by whichever server.
  const different = [...new Set(renewals.map(({ id }) => id))];
  for (const id of different) await succeeded(one, key, id);
  const newest = String(1 + different.length);
  assert.equal((await versionsOf(line.data)).versions, 1 + different.length);
  const now = await Promise.all(servers.map((server) => download(server, key)));
  assert.deepEqual(
    now.map(({ headers }) => headers.get('certificate-version')),
    [newest, newest],
  );

  const { code } = await vault(['api-key', 'revoke', '--id', '1', '--data-dir', line.data]);
  assert.equal(code, 0);
  assert.deepEqual(
    (await Promise.all([download(one, key), download(two, key)])).map(({ status }) => status),
    [401, 401],
  );
  assert(one !== undefined && two !== undefined);
  await one.end();
  assert(isServed(line.data), 'a copy without its log is still refused');
  await two.end();
  assert(!isServed(line.data));
  const { downloads } = await versionsOf(line.data);
  assert.deepEqual(
    ids.filter((id) => !downloads.includes(id)),
    [],
  );
  assert.equal(downloads.length, ids.length + 2);
  const verified = await line.run('audit', 'verify');
  assert.equal(verified.code, 0, verified.stderr);
});

test('a second server on the same port fails with an error message, and the first keeps serving', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name', 'web', '--domain', 'www.example.com');
  const listen = `127.0.0.1:${await freePort()}`;
  const first = await serve(t, line.data, { listen });
  await line.refused(
    ['serve', '--listen', listen],
    new RegExp(`^vault: cannot listen on ${listen.replaceAll('.', '\\.')}: the port is already in use\n`),
  );
  const { status } = await fetch(`${first.url}/api/v1/ready`);
  assert.equal(status, 200);
});

async function versionsOf(dataDir: string): Promise<{ versions: number; downloads: string[] }> {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true });
  try {
    const versions = database.prepare('select count(*) from certificate_versions').pluck().get() as number;
    const query = "select request_id from audit_events where action = 'certificate.download'";
    return { versions, downloads: database.prepare(query).pluck().all() as string[] };
  } finally {
    database.close();
  }
}
