/** `vault api-key create` and `list`: what is printed where, what is refused, and that a refusal changes nothing. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

type ApiKey = { readonly [field: string]: unknown; readonly id: number };

const dir = mkdtempSync(join(tmpdir(), 'vault-api-key-'));
after(() => rmSync(dir, { recursive: true }));
const apiKey = (...args: string[]) => vault(['api-key', args[0] ?? '', '--data-dir', dir, ...args.slice(1)]);
const onlyNote = 'The key is not shown again. Store it where only its client can read it.\n';

before(async () => {
  for (const name of ['web', 'mail.example.com']) {
    const args = ['certificate', 'create', '--name', name, '--domain', 'a.test', '--data-dir', dir];
    assert.equal((await vault(args)).code, 0);
  }
});

async function create(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await apiKey('create', ...args);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: onlyNote });
  return stdout;
}

async function list(): Promise<ApiKey[]> {
  const { code, stdout, stderr } = await apiKey('list');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  return JSON.parse(stdout) as ApiKey[];
}

function auditEvents(): { actor: string; action: string; resource: string; detail: string }[] {
  const database = new BetterSqlite3(join(dir, 'vault.db'), { readonly: true });
  try {
    const query =
      "select actor, action, resource, detail from audit_events where action like 'api_key.%' order by id";
    return database.prepare<[], ReturnType<typeof auditEvents>[number]>(query).all();
  } finally {
    database.close();
  }
}

test('a vault without keys lists an empty JSON array', async () => {
  assert.deepEqual(await apiKey('list'), { code: 0, stdout: '[]\n', stderr: '' });
});

test('create prints only the raw key on stdout; list shows only its prefix', async () => {
  const startedAt = Date.now();
  const raw = await create('--name', 'a client', '--scope', 'certificates:read', '--certificate', 'web');
  assert.match(raw, /^vk_[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}\n$/);
  const [prefix = '', secret = ''] = raw.trim().split('.');
  const { stdout } = await apiKey('list');
  const [key] = (JSON.parse(stdout) as ApiKey[]).slice(-1);
  assert.ok(key);
  const { id, created_at, ...rest } = key;
  assert.ok(Number.isInteger(id));
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/);
  assert.ok(Date.parse(String(created_at)) >= startedAt && Date.parse(String(created_at)) <= Date.now());
  assert.deepEqual(rest, {
    name: 'a client',
    prefix,
    scopes: ['certificates:read'],
    certificates: ['web'],
    allowed_networks: [],
    profiles: [],
    role: null,
    client_certificate: null,
    ...{ certificate_labels: [], reach: [], labels: [] },
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    last_used_ip: null,
    state: 'active',
    previous_prefix: null,
    previous_expires_at: null,
    enrollment: null,
  });
  const hash = createHash('sha256').update(raw.trim()).digest();
  const never = [
    secret,
    ...(['hex', 'base64', 'base64url'] as const).map((encoding) => hash.toString(encoding)),
  ];
  for (const value of never) assert.ok(!stdout.includes(value), value);
});

test('the audit log records the creation with the actor local-cli and without the secret', async () => {
  const raw = await create('--name=audited', '--scope=certificates:read', '--certificate=*');
  const [prefix, secret = ''] = raw.trim().split('.');
  const key = (await list()).at(-1);
  const event = auditEvents().at(-1);
  assert.ok(event);
  const { actor, action, resource, detail } = event;
  assert.deepEqual(
    { actor, action, resource },
    {
      actor: 'local-cli',
      action: 'api_key.create',
      resource: `api-key:${key?.id}`,
    },
  );
  assert.deepEqual(JSON.parse(detail), {
    name: 'audited',
    prefix,
    scopes: ['certificates:read'],
    certificates: ['*'],
    allowed_networks: [],
    profiles: [],
    expires_at: null,
  });
  assert.ok(!JSON.stringify(auditEvents()).includes(secret));
});

test('create deduplicates scopes and certificates, accepts * for all, and converts the expiry to UTC', async () => {
  const scopes = ['renewals:trigger', 'certificates:read', 'private_keys:read', 'certificates:read'];
  const names = ['web', 'mail.example.com', 'web'];
  const several = [
    ...scopes.map((scope) => `--scope=${scope}`),
    ...names.flatMap((name) => ['--certificate', name]),
  ];
  const any = ['--scope=certificates:read', '--certificate', '*', '--certificate=web'];
  await Promise.all([
    create('--name=several', ...several),
    create('--name=any', ...any),
    create('--name=ends', ...any, '--expires-at', '2099-12-31t23:59:59.5+02:00'),
  ]);
  const keys = await list();
  const named = (name: string) => keys.find((key) => key.name === name) ?? assert.fail(name);
  assert.deepEqual(named('several').scopes, ['certificates:read', 'private_keys:read', 'renewals:trigger']);
  assert.deepEqual([...(named('several').certificates as string[])].sort(), ['mail.example.com', 'web']);
  assert.deepEqual(named('any').certificates, ['*']);
  assert.deepEqual([named('any').expires_at, named('ends').expires_at], [null, '2099-12-31T21:59:59.500Z']);
  const ids = keys.map(({ id }) => id);
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
    'in the order of their ids',
  );
});

test('--expires-at accepts a duration or a date (midnight UTC) and rejects a past date', async () => {
  const any = ['--scope=certificates:read', '--certificate=*'];
  const before = Date.now();
  await create('--name=in-90-days', ...any, '--expires-at', '90d');
  const after = Date.now();
  await create('--name=by-date', ...any, '--expires-at', '2099-02-28');
  const ends = (await list()).map((key) => [key.name, key.expires_at] as const);
  const end = Date.parse(String(new Map(ends).get('in-90-days'))) - 90 * 86_400_000;
  assert.ok(end >= before && end <= after, new Date(end).toISOString());
  assert.equal(new Map(ends).get('by-date'), '2099-02-28T00:00:00Z');
  const past = await apiKey('create', '--name=past', ...any, '--expires-at=2020-01-31');
  assert.deepEqual([past.code, past.stderr], [1, 'vault: 2020-01-31T00:00:00Z is not in the future\n']);
});

const valid = {
  name: ['--name=x'],
  scope: ['--scope=certificates:read'],
  certificate: ['--certificate=web'],
};
const createWith = (changed: Partial<Record<keyof typeof valid | 'more', string[]>>) => [
  'create',
  ...Object.values({ ...valid, ...changed }).flat(),
];

const scope = (text: string) =>
  `vault: "${text}" is not a scope: use one of certificates:read, private_keys:read, renewals:trigger, certificates:sign`;
const time = (text: string) =>
  `vault: "${text}" is not a time: use 90d, 2030-01-31 (from 00:00 UTC) or 2030-01-31T00:00:00Z`;
const certificate = (text: string) =>
  `vault: "${text}" is not a name: a certificate name has 1 to 128 letters, digits or "*._-", does not begin with a dot, and is not just "*"`;
const network = (text: string) =>
  `vault: "${text}" is not a network: a network is an IP address such as 192.0.2.7, or a network with a prefix length such as 192.0.2.0/24 or 2001:db8::/32`;
const help = '  Try: vault api-key create --help';

const refusals: [code: 1 | 2, args: string[], stderr: string[]][] = [
  [
    1,
    [
      ...['create', '--name=', '--scope=certificates:write', '--scope=*', '--scope='],
      ...['--certificate=*', '--certificate=.hidden', '--certificate=', '--expires-at=2030-02-31'],
    ],
    [
      ...['vault: name is missing', scope('certificates:write'), scope('*'), scope('')],
      ...[certificate('.hidden'), certificate(''), time('2030-02-31')],
    ],
  ],
  [
    1,
    createWith({ name: ['--name', '   '], more: ['--expires-at=2030-01-31T00:00:00'] }),
    ['vault: name is missing', time('2030-01-31T00:00:00')],
  ],
  [
    1,
    createWith({ name: [`--name=${'x'.repeat(129)}`], more: ['--expires-at=2030-02-30T00:00:00Z'] }),
    ['vault: a name has at most 128 characters', time('2030-02-30T00:00:00Z')],
  ],
  [
    1,
    createWith({ name: ['--name=red\u001b[31m'], more: ['--expires-at=90 days'] }),
    ['vault: a name must not contain control characters', time('90 days')],
  ],
  [
    1,
    createWith({ more: ['--allow-ip=10.0.0.1/8', '--allow-ip', 'proxy.example'] }),
    [network('10.0.0.1/8'), network('proxy.example')],
  ],
  [
    1,
    createWith({ certificate: ['--certificate=wep'] }),
    ['vault: unknown certificate "wep"', '  Did you mean "web"?'],
  ],
  [
    1,
    createWith({ certificate: [...valid.certificate, '--certificate=elsewhere.org'] }),
    ['vault: unknown certificate "elsewhere.org"', '  Try: vault certificate list'],
  ],
  [
    1,
    createWith({ more: ['--expires-at=2020-01-31T00:00:00Z'] }),
    ['vault: 2020-01-31T00:00:00Z is not in the future'],
  ],
  [
    2,
    createWith({ more: ['--expires=2030-01-31T00:00:00Z'] }),
    ['vault: unknown option --expires', '  Did you mean "--expires-at"?'],
  ],
  [2, createWith({ name: [] }), ['vault: --name is missing', help]],
  [2, createWith({ scope: [] }), ['vault: --scope is missing', help]],
  [2, createWith({ certificate: [] }), ['vault: --certificate is missing', help]],
];

test('--allow-ip can be repeated, * means any network, and list shows the networks', async () => {
  await create(...createWith({ more: ['--allow-ip=10.0.0.0/8', '--allow-ip', '2001:DB8::1'] }).slice(1));
  await create(...createWith({ name: ['--name=y'], more: ['--allow-ip', '*'] }).slice(1));
  const networks = (await list()).map(({ allowed_networks }) => allowed_networks);
  assert.deepEqual(networks.slice(-2), [['10.0.0.0/8', '2001:db8::1'], []]);
});

test('a duplicate name is rejected with a hint to rotate, until the existing key is revoked', async () => {
  await create(...createWith({ name: ['--name=taken'] }).slice(1));
  const { id } = (await list()).at(-1) ?? assert.fail();
  const [keys, events] = [await list(), auditEvents()];
  assert.deepEqual(await apiKey(...createWith({ name: ['--name=taken'] })), {
    code: 1,
    stdout: '',
    stderr:
      `vault: API key "taken" already exists (id ${id})\n` +
      `  Choose another name, or replace the secret of that key: vault api-key rotate ${id}\n`,
  });
  assert.deepEqual(await list(), keys);
  assert.deepEqual(auditEvents(), events);
  assert.equal((await apiKey('revoke', 'taken')).code, 0);
  await create(...createWith({ name: ['--name=taken'] }).slice(1));
});

test('create rejects invalid input on stderr and changes neither the keys nor the audit log', async () => {
  const [keys, events] = [await list(), auditEvents()];
  await Promise.all(
    refusals.map(async ([code, args, lines]) => {
      assert.deepEqual(await apiKey(...args), { code, stdout: '', stderr: `${lines.join('\n')}\n` });
    }),
  );
  assert.deepEqual(await list(), keys);
  assert.deepEqual(auditEvents(), events);
});

test('without a vault, only a valid create creates one and prints its data directory', async (t) => {
  const fresh = join(tempDir(t), 'fresh');
  const refused = ['list', 'revoke --id 1', 'delete --id 1', 'create --name x --scope x --certificate *'];
  await Promise.all(
    refused.map(async (args) => {
      const { code, stdout } = await vault(['api-key', ...args.split(' '), '--data-dir', fresh]);
      assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, args);
    }),
  );
  assert.equal(existsSync(fresh), false);
  const args = ['create', '--name=x', '--scope=certificates:read', '--certificate=*', '--data-dir', fresh];
  const { code, stderr } = await vault(['api-key', ...args]);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: `Created a new vault in ${fresh}.\n${onlyNote}` });
});
