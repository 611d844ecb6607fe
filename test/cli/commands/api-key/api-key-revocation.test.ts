/** `vault api-key revoke` and `delete`, by themselves and beside a running server, which obeys at its next request. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { ownRowsIn } from '../../../harness/database/own-rows.ts';
import { nameKeyAlike } from '../../../harness/key-names.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';

type ApiKey = { readonly [field: string]: unknown; readonly id: number };

const dir = mkdtempSync(join(tmpdir(), 'vault-revocation-'));
after(() => rmSync(dir, { recursive: true }));
const apiKey = (...args: string[]) => vault(['api-key', ...args, '--data-dir', dir]);

before(async () => {
  const args = ['certificate', 'create', '--name', 'web', '--domain', 'a.test', '--data-dir', dir];
  assert.equal((await vault(args)).code, 0);
});

async function create(name: string): Promise<{ raw: string; id: number }> {
  const args = ['--name', name, '--scope=certificates:read', '--certificate=*'];
  const { code, stdout, stderr } = await apiKey('create', ...args);
  assert.equal(code, 0, stderr);
  return {
    raw: stdout.trim(),
    id: inDatabase((database) => database.prepare('select max(id) from api_keys').pluck().get()) as number,
  };
}

async function list(): Promise<ApiKey[]> {
  return JSON.parse((await apiKey('list')).stdout) as ApiKey[];
}

async function get(id: number): Promise<ApiKey | undefined> {
  return (await list()).find((key) => key.id === id);
}

function auditOf(id: number): unknown[] {
  const query = 'select actor, action from audit_events where resource = ? order by id';
  return inDatabase((database) => database.prepare(query).all(`api-key:${id}`)) as unknown[];
}

function inDatabase(work: (database: BetterSqlite3.Database) => unknown): unknown {
  const database = new BetterSqlite3(join(dir, 'vault.db'));
  try {
    return work(database);
  } finally {
    database.close();
  }
}

test('a key can be deleted only after revocation; the audit log records both with the actor local-cli', async () => {
  const { id } = await create('one');
  const active = await get(id);
  const early = await apiKey('delete', '--id', String(id));
  assert.deepEqual(early, {
    code: 1,
    stdout: '',
    stderr:
      `vault: API key ${id} (one) is not revoked; only revoked keys can be deleted.\n` +
      `  Fix: vault api-key revoke --id ${id}\n`,
  });
  assert.deepEqual(await get(id), active);

  const revoked = await apiKey('revoke', `--id=${id}`);
  assert.deepEqual(revoked, { code: 0, stdout: '', stderr: `Revoked API key ${id}.\n` });
  const after = await get(id);
  assert.match(String(after?.revoked_at), /Z$/);
  assert.deepEqual(after, { ...active, revoked_at: after?.revoked_at, state: 'revoked' });

  const again = await apiKey('revoke', '--id', String(id));
  assert.equal(again.code, 0);
  assert.deepEqual(await get(id), after, 'the first revocation stays');

  const deleted = await apiKey('delete', '--id', String(id));
  assert.deepEqual(deleted, { code: 0, stdout: '', stderr: `Deleted API key ${id}.\n` });
  assert.equal(await get(id), undefined);
  assert.deepEqual(
    auditOf(id),
    ['create', 'revoke', 'delete'].map((done) => ({ actor: 'local-cli', action: `api_key.${done}` })),
  );
  assert.notEqual((await create('two')).id, id, 'an id is never given to another key');
});

test('revoke and delete reject an unknown id', async () => {
  const keys = await list();
  for (const command of ['revoke', 'delete']) {
    assert.deepEqual(await apiKey(command, '--id', '999999'), {
      code: 1,
      stdout: '',
      stderr: 'vault: Unknown API key 999999.\n  Try: vault api-key list\n',
    });
  }
  assert.deepEqual(await list(), keys);
});

test('a key can be specified by name; an ambiguous name is rejected with the matching ids', async () => {
  const before = await list();
  for (const id of ['0', '-1', '1.0', 'one', '']) {
    const { code, stdout, stderr } = await apiKey('revoke', `--id=${id}`);
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, id);
    assert.match(stderr, new RegExp(`^vault: Unknown API key "${id}"\\.\n {2}(Try|Did)`));
  }
  assert.deepEqual(await list(), before);
  const { id: other } = await create('other');
  await create('twin');
  await nameKeyAlike(dir, other, 'twin');
  const [first, second] = (await list()).filter(({ name }) => name === 'twin').map(({ id }) => id);
  const ambiguous = await apiKey('revoke', 'twin');
  assert.equal(ambiguous.code, 1);
  assert.match(
    ambiguous.stderr,
    new RegExp(
      `^vault: 2 API keys have the name "twin"\\.\n {2}Use --id with one of: ${first} .*, ${second} `,
    ),
  );
  assert.equal((await apiKey('revoke', '--id', String(first))).code, 0);
  const { code, stderr } = await apiKey('revoke', 'twin');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: `Revoked API key ${second}.\n` });
  assert.deepEqual(await apiKey('revoke', 'twin', `--id=${first}`), {
    ...{ code: 2, stdout: '' },
    stderr: 'vault: --id is given 2 times\n  Give it only once.\n',
  });
});

test('a running server accepts a new key immediately and rejects it at the next request after revocation', async (t) => {
  const server = await serve(t, dir);
  const status = async (raw: string) => {
    const headers = { Authorization: `Bearer ${raw}` };
    const response = await fetch(`${server.url}/api/v1/certificates/web`, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  const { raw, id } = await create('brief');
  assert.deepEqual([await status(raw), await status(raw)], [200, 200]);
  assert.equal((await apiKey('revoke', '--id', String(id))).code, 0);
  assert.deepEqual([await status(raw), await status(raw)], [401, 401]);
  assert.equal((await apiKey('delete', '--id', String(id))).code, 0);
  assert.equal(await status(raw), 401);
});

test('list shows the time and IP address of the last use of a key after the server has stopped', async (t) => {
  const { raw, id } = await create('used');
  const server = await serve(t, dir);
  const before = Date.now();
  const response = await fetch(`${server.url}/api/v1/certificates`, {
    headers: { Authorization: `Bearer ${raw}` },
  });
  assert.equal(response.status, 200);
  assert.deepEqual(await server.end(), { code: 0, signal: null });
  const key = await get(id);
  assert.equal(key?.last_used_ip, '127.0.0.1');
  assert.ok(Date.parse(String(key?.last_used_at)) >= before - 1, String(key?.last_used_at));
});

test('an expired key is listed as expired, rejected by the server, and can be revoked', async (t) => {
  const { raw, id } = await create('brief');
  // No test waits for a clock: the expiry is put into the past where it is kept.
  const expire = 'update api_keys set expires_at = ? where id = ?';
  inDatabase((database) => database.prepare(expire).run(Date.now() - 1, id));
  await ownRowsIn(dir);
  assert.equal((await get(id))?.state, 'expired');
  const server = await serve(t, dir);
  const response = await fetch(`${server.url}/api/v1/certificates`, {
    headers: { Authorization: `Bearer ${raw}` },
  });
  assert.equal(response.status, 401);
  assert.equal((await apiKey('revoke', '--id', String(id))).code, 0);
  assert.equal((await get(id))?.state, 'revoked');
});
