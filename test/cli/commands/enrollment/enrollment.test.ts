/** `vault enrollment …`: what is misused and refused, what is printed once, and how tokens and keys are listed. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type CommandLine, commandLine } from '../../../harness/processes/command-line.ts';
import { serve } from '../../../harness/processes/vault-process.ts';

type Key = { readonly id: number; readonly name: string; readonly state: string; readonly key?: string };
type Enrollment = {
  readonly id: number;
  readonly name: string;
  readonly token?: string;
  readonly state: string;
  readonly uses: number;
  readonly api_keys: readonly Key[];
};

const inOneDay = ['--expires-at', '1d'] as const;

suite('enrollments at the command line', () => {
  const undone: (() => unknown)[] = [];
  const t = { after: (undo: unknown) => undone.push(undo as () => unknown) };
  let line: CommandLine;
  let url: string;
  before(async () => {
    line = commandLine(t as never);
    await line.done('certificate', 'create', '--name', 'web', '--domain', 'web.example.test');
    ({ url } = await serve(t as never, line.data));
  });
  after(async () => {
    for (const undo of undone.reverse()) await undo();
  });

  /** A machine that exchanges the token. */
  const exchange = async (token: string, host: string): Promise<Key> => {
    const response = await fetch(`${url}/api/v1/enrollments/exchange`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ host }),
    });
    const text = await response.text();
    assert.equal(response.status, 201, text);
    return JSON.parse(text) as Key;
  };
  const create = async (...words: string[]) =>
    (await line.done('enrollment', 'create', '--certificate', 'web', ...inOneDay, ...words)).stdout.trim();

  const misused: readonly (readonly [words: string[], stderr: RegExp])[] = [
    [['create', ...inOneDay], /^vault: --certificate is missing\n {2}Try: vault enrollment create --help/],
    [['create', '--certificate', 'web'], /^vault: --expires-at is missing/],
    [
      ['create', '--certificate', 'web', ...inOneDay, '--uses', 'many'],
      /^vault: --uses: "many" is not a number of machines\n {2}Write a number such as 20\./,
    ],
    [['create', '--certificate', 'web', ...inOneDay, '--token', 'x'], /^vault: unknown option --token/],
    [['show'], /^vault: --id is missing/],
    [['revoke', '--with-keys'], /^vault: --id is missing/],
    [['delete'], /^vault: --id is missing/],
  ];
  for (const [words, stderr] of misused) {
    test(`vault enrollment ${words.join(' ')} is a usage error with exit code 2`, async () => {
      await line.refused(['enrollment', ...words], stderr, 2);
    });
  }

  const certificate = ['create', '--certificate', 'web', ...inOneDay];
  const refused: readonly (readonly [words: string[], stderr: RegExp])[] = [
    [['create', '--certificate', 'wab', ...inOneDay], /^vault: .*unknown certificate "wab"[\s\S]*"web"\?/],
    [['create', '--certificate', 'web', '--expires-at', 'soon'], /^vault: "soon" is not an? /],
    [['create', '--certificate', 'web', '--expires-at', '2020-01-01'], /is not in the future/],
    [
      [...certificate, '--key-expires-at', '1h'],
      /is before the token expires[\s\S]*Let the keys expire later/,
    ],
    [[...certificate, '--uses', '0'], /^vault: .*a token has at least one use/],
    [[...certificate, '--uses', '10001'], /^vault: .*a token has at most 10000 uses/],
    [[...certificate, '--allow-ip', '10.0.0.0/33'], /^vault: "10\.0\.0\.0\/33" is not /],
    [[...certificate, '--scope', 'everything'], /^vault: "everything" is not a scope/],
    [[...certificate, '--name', 'we\u200bb'], /^vault: a name .*U\+200B/],
    [['show', 'nothing'], /^vault: Unknown enrollment "nothing"\.\n {2}Try: vault enrollment list/],
    [['revoke', '99'], /^vault: Unknown enrollment 99\.\n {2}Try: vault enrollment list/],
  ];
  for (const [words, stderr] of refused) {
    test(`vault enrollment ${JSON.stringify(words.join(' '))} is rejected`, async () => {
      await line.refused(['enrollment', ...words], stderr);
    });
  }

  test('create prints only the token on stdout, how to use it on stderr, and the vault does not store it', async () => {
    const { stdout, stderr } = await line.done('enrollment', ...certificate, '--name', 'printed');
    assert.match(stdout, /^ve_[\w-]{12}\.[\w-]{43}\n$/);
    assert.match(stderr, /^The token is not shown again\. Store it in a file that only root can read/);
    assert.match(stderr, /^ {2}install\.sh --enroll /m);
    const token = stdout.trim();
    assert(!stderr.includes(token));
    assert(!line.holds(token.slice(16)));
    const { stdout: shown } = await line.done('enrollment', 'show', 'printed');
    assert(shown.includes(`token          ${token.slice(0, 15)}…\n`), shown);
    assert(!shown.includes(token.slice(16)));
  });

  test('create --json prints the enrollment with its token; show --json prints it with its keys instead', async () => {
    const words = [
      '--certificate',
      '*',
      ...inOneDay,
      '--uses',
      '2',
      '--allow-ip',
      '127.0.0.1',
      '--bind-address',
    ];
    const created = await line.json<Enrollment>('enrollment', 'create', '--name', 'json', ...words);
    const { token = '', ...rest } = created;
    const key = await exchange(token, 'www1');
    const shown = await line.json<Enrollment>('enrollment', 'show', 'json');
    const { api_keys: keys, ...view } = shown;
    assert.deepEqual({ ...view, uses: 0, last_used_at: null }, { ...rest, state: 'active' });
    assert.deepEqual(
      keys.map(({ id, name, state }) => [id, name, state]),
      [[key.id, 'www1', 'active']],
    );
    assert.deepEqual(Object.keys(keys[0] ?? {}).toSorted(), [
      ...['allowed_networks', 'created_at', 'id', 'last_used_at', 'last_used_ip', 'name', 'state'],
    ]);
  });

  test('list shows each token with its state, its uses and the keys that it created, revoked or not', async () => {
    const token = await create('--name', 'listed', '--uses', '3', '--allow-ip', '127.0.0.0/8');
    await exchange(token, 'db1');
    const lost = await exchange(token, 'db2');
    await line.done('api-key', 'revoke', String(lost.id));
    const row = async () =>
      (await line.done('enrollment', 'list')).stdout.split('\n').find((text) => text.includes(' listed '));
    assert.match(
      (await row()) ?? '',
      /^\d+ +listed +active +2 of 3 +web +127\.0\.0\.0\/8 +\S.* +db1 db2 \(revoked\)$/,
    );
    const { stdout } = await line.done('enrollment', 'list');
    assert.match(stdout, /^ID +NAME +STATE +USES +CERTIFICATES +NETWORKS +EXPIRES +API KEYS\n/);
    await exchange(token, 'db3');
    assert.match((await row()) ?? '', / used up +3 of 3 /);
    const { stdout: facts } = await line.done('enrollment', 'show', 'listed');
    assert.match(facts, /^state {10}used up$/m);
    assert.match(facts, /^API key \d+ +db2 \(revoked\), last used never$/m);
  });

  test('revoke keeps the keys of the machines, and with --with-keys revokes those that are left', async () => {
    const token = await create('--name', 'old', '--uses', '5');
    const keys = [await exchange(token, 'mail1'), await exchange(token, 'mail2')];
    const { id } = await line.json<Enrollment>('enrollment', 'show', 'old');
    const states = async () =>
      (await line.json<Enrollment>('enrollment', 'show', String(id))).api_keys.map(({ state }) => state);
    await line.refused(
      ['enrollment', 'delete', 'old', '--yes'],
      new RegExp(`is active; revoke it before you delete it\\.\\n {2}Fix: vault enrollment revoke ${id}`),
    );
    const alone = await line.done('enrollment', 'revoke', 'old');
    assert.deepEqual([alone.stdout, alone.stderr], ['', `Revoked enrollment ${id}.\n`]);
    assert.deepEqual(await states(), ['active', 'active']);
    await line.done('api-key', 'revoke', String(keys[0]?.id));
    const both = await line.done('enrollment', 'revoke', 'old', '--with-keys');
    assert.equal(both.stderr, `Revoked enrollment ${id}.\nAPI keys revoked: 1\n`);
    assert.deepEqual(await states(), ['revoked', 'revoked']);
    const { stderr } = await line.done('enrollment', 'delete', 'old');
    assert.equal(stderr, `Deleted enrollment ${id}.\n`);
    await line.refused(['enrollment', 'show', 'old'], /^vault: Unknown enrollment "old"/);
    const left = await line.json<(Key & { enrollment: number })[]>('api-key', 'list');
    assert.deepEqual(
      left.filter(({ enrollment }) => enrollment === id).map(({ name }) => name),
      ['mail1', 'mail2'],
    );
  });

  test('a name means the enrollment that is not revoked, and two of them are told apart by id', async () => {
    await create('--name', 'twice');
    await create('--name', 'twice');
    await line.refused(
      ['enrollment', 'show', 'twice'],
      /^vault: 2 enrollments have the name "twice"\.\n {2}Use --id with one of: \d+ \(ve_[\w-]{12}…\), \d+ \(ve_/,
    );
    const all = await line.json<Enrollment[]>('enrollment', 'list');
    const [first, second] = all.filter(({ name }) => name === 'twice');
    await line.done('enrollment', 'revoke', '--id', String(first?.id));
    assert.equal((await line.json<Enrollment>('enrollment', 'show', 'twice')).id, second?.id);
    await line.refused(['enrollment', 'show', 'twce'], /Did you mean "twice"\?/);
  });

  test('a name means the active enrollment for show and revoke, and one that ended for delete', async () => {
    await exchange(await create('--name', 'weekly'), 'week1');
    await create('--name', 'weekly');
    const states = async () =>
      (await line.json<Enrollment[]>('enrollment', 'list'))
        .filter(({ name }) => name === 'weekly')
        .map(({ state }) => state);
    assert.deepEqual(await states(), ['used_up', 'active']);
    assert.equal((await line.json<Enrollment>('enrollment', 'show', 'weekly')).state, 'active');
    await line.done('enrollment', 'revoke', 'weekly');
    assert.deepEqual(await states(), ['used_up', 'revoked']);
    assert.equal((await line.json<Enrollment>('enrollment', 'show', 'weekly')).state, 'used_up');
    await line.refused(['enrollment', 'delete', 'weekly'], /^vault: 2 enrollments have the name "weekly"/);
    await line.done('enrollment', 'revoke', 'weekly');
    assert.deepEqual(await states(), ['revoked', 'revoked']);
    const [first] = (await line.json<Enrollment[]>('enrollment', 'list')).filter(
      ({ name }) => name === 'weekly',
    );
    await line.done('enrollment', 'delete', '--id', String(first?.id));
    await create('--name', 'weekly');
    assert.deepEqual(await states(), ['revoked', 'active']);
    await line.done('enrollment', 'delete', 'weekly');
    assert.deepEqual(await states(), ['active']);
    await line.refused(
      ['enrollment', 'delete', 'weekly', '--yes'],
      /is active; revoke it before you delete it\.\n {2}Fix: vault enrollment revoke \d+/,
    );
  });
});

test('a list without enrollments says how to create one', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name', 'a', '--domain', 'a.example');
  const { stdout, stderr } = await line.done('enrollment', 'list');
  assert.deepEqual([stdout, stderr], ['', 'No enrollments yet.\n  Try: vault enrollment create --help\n']);
  assert.deepEqual(await line.json('enrollment', 'list'), []);
  const none = await line.done('enrollment', 'list', '--label', 'team=web');
  assert.equal(none.stderr, 'No matching enrollments.\n');
});
