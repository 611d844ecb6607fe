/**
 * `vault certificate delete`, `undelete` and `purge`: what is deleted is gone for everyone, until it is restored whole.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import {
  addCa,
  commandLine,
  commandLineWithCa,
  commandWords,
} from '../../../harness/processes/command-line.ts';
import { serve } from '../../../harness/processes/vault-process.ts';

type Deleted = { name: string; deleted_by: string; deleted_at: string; purge_at: string; api_keys: object[] };
type Event = { action: string; actor: string; resource: string };

test('a deleted certificate returns 404 and is restored with the same key, versions and renewal', async (t) => {
  const line = commandLine(t);
  const { data, done, refused, json } = line;
  await done(...commandWords('certificate create --name web --domain web.test --reuse-key'));
  await done(...commandWords('certificate renew --name web --wait'));
  const scopes = ['--scope=private_keys:read', '--scope=certificates:read'];
  const everything = (
    await done('api-key', 'create', '--name=all', ...scopes, '--certificate=*')
  ).stdout.trim();
  await done('api-key', 'create', '--name=one', ...scopes, '--certificate=web');
  const server = await serve(t, data);
  const get = async (path: string) => {
    const headers = { Authorization: `Bearer ${everything}` };
    const response = await fetch(`${server.url}/api/v1/certificates${path}`, { headers });
    return { status: response.status, etag: response.headers.get('etag'), text: await response.text() };
  };
  const files = () =>
    Promise.all(['/web/private.key', '/web/fullchain.crt?version=1', '/web/versions'].map(get));
  const before = await files();
  await done(...commandWords('certificate update --name web --rotate-key'));
  const nextPin = async () =>
    (await json<{ next_public_key_pin: string | null }>(...commandWords('certificate show --name web')))
      .next_public_key_pin;
  const announced = await nextPin();
  assert(announced !== null);
  await refused(
    commandWords('certificate delete --name web'),
    /API keys have "web" in their allowlists: 2 \(one\)/,
  );
  const { stderr } = await done(...commandWords('certificate delete --name web --force'));
  assert.equal(
    stderr,
    'Deleted certificate web. The vault keeps it for 30 days.\n' +
      '  To restore it: vault certificate undelete --name web\n',
  );
  for (const { status, text } of await files()) {
    assert.deepEqual([status, JSON.parse(text).code], [404, 'certificate_not_found']);
  }
  assert.deepEqual(JSON.parse((await get('')).text), []);
  assert.deepEqual(await json('certificate', 'list'), []);
  const [deleted, ...none] = await json<Deleted[]>('certificate', 'list', '--deleted');
  assert.deepEqual(none, []);
  assert.deepEqual(
    [deleted?.name, deleted?.deleted_by, deleted?.api_keys],
    ['web', 'local-cli', [{ id: 2, name: 'one' }]],
  );
  assert.equal(Date.parse(deleted?.purge_at ?? '') - Date.parse(deleted?.deleted_at ?? ''), 30 * 86_400_000);

  await done('master-key', 'rotate');
  const restored = await done(...commandWords('certificate undelete --name web'));
  assert.equal(
    restored.stderr,
    'Restored certificate web.\n' +
      '  These API keys listed it and no longer do: 2 (one). Create new keys for their clients.\n',
  );
  assert.deepEqual(await files(), before);
  assert.deepEqual(await json('certificate', 'list', '--deleted'), []);
  assert.equal(await nextPin(), announced, 'clients expect the announced key');
  await done(...commandWords('certificate update --name web --no-rotate-key'));
  const [view] = await json<{ status: string; renewal: { next_at: string } }[]>('certificate', 'list');
  assert.equal(view?.status, 'valid');
  assert(Date.parse(view?.renewal.next_at ?? '') > Date.now());
  await done(...commandWords('certificate renew --name web --wait'));
  assert.equal((await get('/web/private.key')).text, before[0]?.text, 'the next version keeps the key, too');
  const events = await json<Event[]>('audit', 'list');
  const told = events.filter(({ action }) => /^certificate\.(un)?delete$/.test(action));
  assert.deepEqual(told.map(({ action, actor, resource }) => [action, actor, resource]).sort(), [
    ['certificate.delete', 'local-cli', 'certificate:web'],
    ['certificate.undelete', 'local-cli', 'certificate:web'],
  ]);
});

test('the name of a deleted certificate can be reused; undelete then requires --as', async (t) => {
  const { done, refused, json } = commandLine(t);
  const create = commandWords('certificate create --name web --domain');
  await done(...create, 'first.test');
  await done(...commandWords('certificate delete --name web'));
  await done(...create, 'second.test');
  await refused(
    commandWords('certificate undelete --name web'),
    'vault: A certificate named "web" already exists.\n' +
      '  Restore the deleted one under another name with --as NAME, or delete the existing one first.\n',
  );
  assert.equal(
    (await done(...commandWords('certificate undelete --name web --as old'))).stderr,
    'Restored certificate old.\n',
  );
  const views = await json<{ name: string; domains: string[] }[]>('certificate', 'list');
  assert.deepEqual(
    views.map(({ name, domains }) => [name, ...domains]),
    [
      ['old', 'first.test'],
      ['web', 'second.test'],
    ],
  );
  await refused(
    commandWords('certificate undelete --name web'),
    'vault: Unknown deleted certificate "web".\n  Try: vault certificate list --deleted\n',
  );
});

test('purge requires --yes without a terminal and removes every trace of the private key', async (t) => {
  const { data, done, refused, holds } = commandLine(t);
  await done(...commandWords('certificate create --name web --domain web.test'));
  await refused(
    commandWords('certificate purge --name web --yes'),
    /^vault: Unknown deleted certificate "web"/,
  );
  await done(...commandWords('certificate delete --name web'));
  await refused(
    commandWords('certificate purge --name web'),
    'vault: refusing without confirmation: Destroy the deleted certificate web and its private keys?\n' +
      '  Add --yes to confirm. Nothing was changed.\n',
  );
  const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  const sealed = database.prepare('select sealed_private_key from certificate_versions').pluck().get();
  database.close();
  assert(sealed instanceof Buffer && holds(sealed));
  await done(...commandWords('certificate purge --name web --yes'));
  assert.equal(holds(sealed), false, 'not even in a part of the file that is free');
  await refused(commandWords('certificate undelete --name web'), /^vault: Unknown deleted certificate "web"/);
});

test('a certificate whose issuer was removed is restored without renewal, with a hint to set another', async (t) => {
  const { done, ca, json, ...line } = await commandLineWithCa(t);
  await done(...commandWords('certificate create --name web --domain web.test --issuer ca --wait'));
  await done(...commandWords('certificate delete --name web'));
  await done(...commandWords('issuer remove --name ca'));
  assert.equal(
    (await done(...commandWords('certificate undelete --name web'))).stderr,
    'Restored certificate web.\n' +
      '  Its issuer ca was removed. To renew it again, set another:\n' +
      '  Fix: vault certificate update --name web --issuer ISSUER\n',
  );
  const [view] = await json<{ issuer: null; auto_renew: boolean; status: string }[]>('certificate', 'list');
  assert.deepEqual([view?.issuer, view?.auto_renew, view?.status], [null, false, 'valid']);
  await addCa({ done, json, ...line }, ca);
  await done(...commandWords('certificate update --name web --issuer ca --wait'));
  await done(...commandWords('certificate delete --name web'));
  assert.equal(
    (await done(...commandWords('certificate undelete --name web'))).stderr,
    'Restored certificate web.\n',
  );
  await done(...commandWords('certificate revoke --name web --reason superseded'));
});
