/** `vault admin …`: people are made, listed, given new passwords and removed on the machine itself. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { outside } from '../../harness/database/outside-database.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { secondStep, setUpApp } from '../../harness/http/second-factors.ts';
import {
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  signIn,
} from '../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable, type Outcome, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Person = { readonly name: string; readonly role: string; readonly last_signed_in_at: string | null };

const admin = (data: string, input: string, ...words: readonly string[]): Promise<Outcome> =>
  vault(['admin', ...words, '--data-dir', data], { input });

const create = (data: string, name: string, input: string) =>
  admin(data, input, 'create', '--name', name, '--password-stdin');

async function people(data: string): Promise<Person[]> {
  return JSON.parse((await admin(data, '', 'list', '--json')).stdout);
}

suite('admin create', () => {
  test('rejects invalid names and passwords, creates nothing, and prints no password', async (t) => {
    const data = join(tempDir(t), 'data');
    for (const [name, password, why] of [
      ['', goodPassword, /a name has up to 64/],
      ['a b', goodPassword, /a name has up to 64/],
      ['../alice', goodPassword, /a name has up to 64/],
      ['alice', '', /password is missing/],
      ['alice', '\n', /password is missing/],
      ['alice', 'short', /at least 12 characters/],
      ['alice', 'password1234', /too common/],
      ['alice', 'x'.repeat(1025), /at most 1024 bytes/],
    ] as const) {
      const outcome = await create(data, name, password);
      assert.deepEqual([outcome.code, outcome.stdout], [1, ''], name);
      assert.match(outcome.stderr, why);
      assert(password.length < 2 || !outcome.stderr.includes(password));
    }
    if (existsSync(data)) assert.deepEqual(await people(data), []);
  });

  test('rejects --password and requires --password-stdin without a terminal', async (t) => {
    const data = join(tempDir(t), 'data');
    const argument = await admin(data, '', 'create', '--name', 'alice', '--password', goodPassword);
    assert.equal(argument.code, 2);
    assert(!argument.stderr.includes(goodPassword));
    const silent = await admin(data, '', 'create', '--name', 'alice');
    assert.equal(silent.code, 2);
    assert.match(silent.stderr, /--password-stdin/);
    assert.equal(existsSync(data), false);
  });

  test('creates one administrator per name, regardless of case', async (t) => {
    const data = join(tempDir(t), 'data');
    const made = await create(data, 'alice', `${goodPassword}\r\n`);
    assert.deepEqual([made.code, made.stdout], [0, '']);
    assert.match(made.stderr, /Created administrator alice\./);
    const again = await create(data, 'Alice', otherPassword);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /Administrator "alice" already exists/);
    const hash = outside(data, (db) => db.prepare('select password_hash from administrators').pluck().get());
    assert.match(String(hash), /^\$argon2id\$v=19\$m=65536,t=3,p=4\$/);
    const [event] = eventsOf(data, 'administrator.create');
    assert.deepEqual([event?.actor, event?.resource], ['local-cli', 'administrator:alice']);
  });

  test('prompts twice on a terminal, without echo, and rejects passwords that differ', {
    ...needs('script'),
  }, async (t) => {
    const data = join(tempDir(t), 'data');
    const differing = await typing(data, [goodPassword, otherPassword]);
    assert.match(differing, /the passwords do not match/);
    assert.equal(existsSync(data), false);
    const same = await typing(data, [goodPassword, goodPassword]);
    assert.match(same, /^Password for alice: \r\nRepeat: \r\n/);
    assert.match(same, /Created administrator alice\./);
    assert(!same.includes('correct') && !differing.includes('several'));
    assert.deepEqual(
      (await people(data)).map(({ name }) => name),
      ['alice'],
    );
  });
});

suite('other admin commands', () => {
  test('reject unknown names and data directories without a vault', async (t) => {
    const data = join(tempDir(t), 'data');
    const list = await admin(data, '', 'list');
    assert.deepEqual([list.code, existsSync(data)], [1, false]);
    await create(data, 'alice', goodPassword);
    for (const words of [
      ['delete', '--name', 'bob'],
      ['reset-password', '--name', 'bob', '--password-stdin'],
    ]) {
      const outcome = await admin(data, otherPassword, ...words);
      assert.equal(outcome.code, 1);
      assert.match(outcome.stderr, /Unknown administrator "bob"/);
    }
  });

  test('list administrators, reset passwords and delete even the last one, with a warning', async (t) => {
    const data = join(tempDir(t), 'data');
    await create(data, 'alice', goodPassword);
    await create(data, 'bob', goodPassword);
    assert.deepEqual(
      (await people(data)).map(({ name, last_signed_in_at }) => [name, last_signed_in_at]),
      [
        ['alice', null],
        ['bob', null],
      ],
    );
    const table = (await admin(data, '', 'list')).stdout;
    assert.match(
      table,
      /^NAME {3}ROLE +SIGN-IN +CREATED +LAST SIGNED IN\nalice {2}admin {2}password .* never\nbob {4}admin {2}password .* never\n$/,
    );
    const weak = await admin(data, 'short', 'reset-password', '--name', 'bob', '--password-stdin');
    assert.equal(weak.code, 1);
    const reset = await admin(data, otherPassword, 'reset-password', '--name', 'bob', '--password-stdin');
    assert.deepEqual([reset.code, reset.stderr], [0, 'Changed the password of bob; ended 0 sessions.\n']);
    const first = await admin(data, '', 'delete', '--name', 'bob');
    assert.deepEqual([first.code, first.stderr], [0, 'Deleted administrator bob.\n']);
    const last = await admin(data, '', 'delete', '--name', 'alice');
    assert.equal(last.code, 0);
    assert.match(last.stderr, /No administrators are left, so no one can sign in/);
    const actions = ['administrator.password', 'administrator.delete'].flatMap((action) =>
      eventsOf(data, action),
    );
    assert.deepEqual(
      actions.map(({ actor, resource }) => [actor, resource]),
      [
        ['local-cli', 'administrator:bob'],
        ['local-cli', 'administrator:bob'],
        ['local-cli', 'administrator:alice'],
      ],
    );
  });
});

test('admin reset-password removes the second factors, says so, and is recorded', async (t) => {
  const data = join(tempDir(t), 'data');
  const server = await testServer(t, { dataDir: data });
  await makeAdministrator(server.vault, 'alice');
  const app = await setUpApp(server, await signIn(server, 'alice'));
  const reset = await admin(data, otherPassword, 'reset-password', '--name', 'alice', '--password-stdin');
  assert.deepEqual(
    [reset.code, reset.stderr],
    [
      0,
      'Changed the password of alice; ended 1 session.\n' +
        'Removed their second factors: 0 passkeys, 1 authenticator app, 10 recovery codes. The audit log records this.\n',
    ],
  );
  const [event] = eventsOf(data, 'administrator.password');
  assert.deepEqual(event?.detail, {
    sessions_ended: 1,
    second_factors_cleared: { authenticator_apps: 1, recovery_codes: 10 },
  });
  await signIn(server, 'alice', otherPassword);
  const credentials = { name: 'alice', password: otherPassword };
  const again = await server.get('/api/v1/session', undefined, fromPage('POST', credentials));
  assert.equal(again.status, 201);
  assert.equal((await secondStep(server, undefined, app.recoveryCodes[0] ?? '')).status, 409);
});

suite('the role of an administrator', () => {
  test('is admin unless another one is given, and changes by admin update', async (t) => {
    const data = join(tempDir(t), 'data');
    await create(data, 'alice', goodPassword);
    const words = ['create', '--name', 'bob', '--role', 'viewer', '--password-stdin'];
    assert.equal((await admin(data, goodPassword, ...words)).code, 0);
    const roles = async () => (await people(data)).map(({ name, role }) => `${name} ${role}`);
    assert.deepEqual(await roles(), ['alice admin', 'bob viewer']);
    const changed = await admin(data, '', 'update', '--name', 'BOB', '--role', 'operator');
    assert.deepEqual([changed.code, changed.stderr], [0, 'Administrator bob has the role operator.\n']);
    await admin(data, '', 'update', '--name', 'bob', '--role', 'operator');
    await admin(data, '', 'update', '--name', 'alice', '--role', 'viewer');
    assert.deepEqual(await roles(), ['alice viewer', 'bob operator']);
    assert.deepEqual(
      eventsOf(data, 'administrator.update').map(({ resource, detail }) => [resource, detail]),
      [
        ['administrator:bob', { role: 'operator', before: { role: 'viewer' } }],
        ['administrator:alice', { role: 'viewer', before: { role: 'admin' } }],
      ],
    );
  });

  test('is refused if it is unknown, and nothing changes', async (t) => {
    const data = join(tempDir(t), 'data');
    await create(data, 'alice', goodPassword);
    for (const words of [
      ['create', '--name', 'bob', '--role', 'root', '--password-stdin'],
      ['update', '--name', 'alice', '--role', 'Admin'],
    ]) {
      const { code, stderr } = await admin(data, goodPassword, ...words);
      assert.equal(code, 1);
      assert.match(stderr, /role must be one of "viewer", "operator", "admin"/);
    }
    assert.equal((await admin(data, '', 'update', '--name', 'bob', '--role', 'viewer')).code, 1);
    assert.deepEqual(
      (await people(data)).map(({ name, role }) => [name, role]),
      [['alice', 'admin']],
    );
  });
});

/** Types the answers on a terminal, each when its question stands there, and returns what could be seen. */
async function typing(data: string, answers: readonly string[]): Promise<string> {
  const command = [...fromExecutable, 'admin', 'create', '--name=alice', '--data-dir', data].join(' ');
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    env: { ...process.env, SHELL: '/bin/sh' },
  });
  const questions = ['Password for alice: ', 'Repeat: '];
  let seen = '';
  let asked = 0;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    seen += chunk;
    if (asked < questions.length && seen.includes(questions[asked] ?? '')) {
      child.stdin.write(`${answers[asked]}\r`);
      asked += 1;
    }
  });
  await once(child, 'close');
  return seen;
}

test('a reach is set and changed, shown in lists, and refused with the role admin', async (t) => {
  const data = join(tempDir(t), 'data');
  const reach = ['--reach', 'team=web'];
  const made = await admin(
    data,
    goodPassword,
    ...['create', '--name=olga', '--password-stdin', '--role=operator'],
    ...reach,
  );
  assert.equal(made.code, 0, made.stderr);
  const reaches = async () => (await people(data)).map((person) => (person as { reach?: unknown }).reach);
  assert.deepEqual(await reaches(), [['team=web']]);
  assert.match((await admin(data, '', 'list')).stdout, /REACH[\s\S]*olga +operator +team=web/);
  const refused = await admin(data, '', 'update', 'olga', '--role=admin');
  assert.match(refused.stderr, /the role admin reaches everything; use the role viewer or operator/);
  const changed = await admin(data, '', 'update', 'olga', '--reach=team=db', '--reach=team=web');
  assert.match(changed.stderr, /has the role operator and the reach team=db, team=web/);
  assert.equal((await admin(data, '', 'update', 'olga', '--role=admin', '--reach=none')).code, 0);
  assert.deepEqual(await reaches(), [[]]);
});

test('profiles are set, changed and cleared, shown in lists, and refused with other roles', async (t) => {
  const data = join(tempDir(t), 'data');
  await create(data, 'alice', goodPassword);
  for (const name of ['web', 'people']) {
    const added = await vault(['issuer', 'profile', 'add', 'local-ca', name, '--data-dir', data]);
    assert.equal(added.code, 0, added.stderr);
  }
  const olga = ['create', '--name=olga', '--password-stdin', '--profile=local-ca/web'];
  const refused = await admin(data, goodPassword, ...olga);
  assert.equal(refused.code, 1);
  assert.equal(
    refused.stderr,
    'vault: the role admin may use every profile; use the role operator\n  To remove the profiles, add "--profile none", or "profiles": [] to the request.\n',
  );
  const viewer = await admin(data, goodPassword, ...olga, '--role=viewer');
  assert.match(
    viewer.stderr,
    /^vault: the role viewer has no certificates issued; only the role operator has/,
  );
  const unknown = await admin(data, goodPassword, ...olga, '--role=operator', '--profile=local-ca/wep');
  assert.match(unknown.stderr, /^vault: no private CA has the profile "local-ca\/wep"\n/);
  const made = await admin(data, goodPassword, ...olga, '--role=operator');
  assert.equal(made.code, 0, made.stderr);
  const profiles = async () =>
    (await people(data)).map((person) => (person as { profiles?: unknown }).profiles);
  assert.deepEqual(await profiles(), [[], ['local-ca/web']]);
  const { stdout } = await admin(data, '', 'list');
  assert.match(stdout, /^NAME +ROLE +PROFILES +SIGN-IN /);
  assert.match(stdout, /\nalice +admin +any +password [\s\S]*\nolga +operator +local-ca\/web +password /);
  const both = ['--profile=local-ca/web', '--profile=local-ca/people'];
  const changed = await admin(data, '', 'update', 'olga', ...both, '--reach=team=web');
  assert.deepEqual(
    [changed.code, changed.stderr],
    [
      0,
      'Administrator olga has the role operator and the reach team=web and the profiles local-ca/web, local-ca/people.\n',
    ],
  );
  assert.deepEqual(await profiles(), [[], ['local-ca/web', 'local-ca/people']]);
  assert.equal((await admin(data, '', 'update', 'olga', '--role=admin', '--reach=none')).code, 1);
  const cleared = await admin(data, '', 'update', 'olga', '--profile=none');
  assert.equal(
    cleared.stderr,
    'Administrator olga has the role operator and the reach team=web.\n',
    'the reach stays',
  );
  assert.deepEqual(await profiles(), [[], []]);
  const nothing = await admin(data, '', 'update', 'olga');
  assert.deepEqual([nothing.code, nothing.stderr.split('\n')[0]], [2, 'vault: nothing to change']);
});
