/** `vault acme-client …`: what is misused and refused, what is printed once, and what lists and updates show. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type CommandLine, commandLine } from '../../../harness/processes/command-line.ts';

type Created = { id: number; name: string; kid: string; hmac_key: string; directories: string[] };

suite('ACME clients at the command line', () => {
  const undone: (() => unknown)[] = [];
  let line: CommandLine;
  before(async () => {
    line = commandLine({ after: (undo) => undone.push(undo as () => unknown) });
    await line.done('acme-client', 'create', '--name', 'caddy', '--domain', '*.example.com');
  });
  after(async () => {
    for (const undo of undone.reverse()) await undo();
  });

  const misused: readonly (readonly [words: string[], stderr: RegExp])[] = [
    [['create', '--name', 'x'], /^vault: --domain is missing/],
    [['create', '--domain', 'a.example'], /^vault: --name is missing/],
    [
      ['create', '--name', 'x', '--domain', 'a.example', '--rate', 'fast'],
      /^vault: --rate: "fast" is not a number/,
    ],
    [['update', 'caddy'], /^vault: nothing to change\n {2}Try: vault acme-client update --help/],
    [['revoke'], /^vault: --id is missing|^vault: ID is missing/],
  ];
  for (const [words, stderr] of misused) {
    test(`vault acme-client ${words.join(' ')} is a usage error with exit code 2`, async () => {
      await line.refused(['acme-client', ...words], stderr, 2);
    });
  }

  const refused: readonly (readonly [words: string[], stderr: RegExp])[] = [
    [
      ['create', '--name', 'x', '--domain', 'www.*.example'],
      /^vault: "www\.\*\.example" has "\*" in the middle: a wildcard is only the whole first label/,
    ],
    [
      ['create', '--name', 'x', '--domain', 'a.example', '--issuer', 'local-cb'],
      /^vault: unknown issuer "local-cb"/i,
    ],
    [
      ['create', '--name', 'caddy', '--domain', 'a.example'],
      /^vault: .*ACME client "caddy" already exists \(id 1\)[\s\S]*vault acme-client rotate 1/,
    ],
    [
      ['create', '--name', 'x', '--domain', 'a.example', '--expires-at', '2020-01-01'],
      /is not a time|is not in the future/,
    ],
    [
      ['create', '--name', 'x', '--domain', 'a.example', '--validate', 'http-01,email'],
      /^vault: "email" is not a validation: use http-01, tls-alpn-01, dns-01, or none/,
    ],
    [
      ['create', '--name', 'x', '--domain', 'a.example', '--rate', '0'],
      /a rate is at least 1 order per hour/,
    ],
    [['show', 'cady'], /^vault: Unknown ACME client "cady"\.[\s\S]*Did you mean "caddy"\?/i],
    [['rotate', '99'], /^vault: Unknown ACME client 99\.[\s\S]*vault acme-client list/i],
    [
      ['delete', 'caddy'],
      /is not revoked; only revoked clients can be deleted\.[\s\S]*vault acme-client revoke 1/,
    ],
  ];
  for (const [words, stderr] of refused) {
    test(`vault acme-client ${words.join(' ')} is rejected`, async () => {
      await line.refused(['acme-client', ...words], stderr);
    });
  }

  test('create prints the kid and HMAC key once, with the directory URL and a certbot command', async () => {
    const words = [
      'acme-client',
      'create',
      '--name',
      'web',
      '--domain',
      '*.web.example',
      '--issuer',
      'local-ca',
    ];
    const { stdout, stderr } = await line.done(
      ...words,
      '--allow-ip',
      '10.0.0.0/8',
      '--validate',
      'dns-01,http-01',
    );
    const [, kid = '', key = ''] = /^kid {7}([0-9a-f]{24})\nhmac_key {2}([\w-]{43})\n$/.exec(stdout) ?? [];
    assert.notEqual(key, '', stdout);
    assert.match(stderr, /^The HMAC key is not shown again\. Give it to web only\.\n/);
    assert.match(
      stderr,
      /\nDirectory: http:\/\/127\.0\.0\.1:8080\/acme\/local-ca\/directory\nACME programs need HTTPS/,
    );
    assert(stderr.includes(`--eab-kid ${kid} --eab-hmac-key ${key} `), stderr);
    assert.match(stderr, /--domain 'www\.web\.example'\n$/);
    const shown = await line.done('acme-client', 'show', 'web');
    assert.match(shown.stdout, /^validation {2}http-01 dns-01$/m);
    assert.match(shown.stdout, /^networks {4}10\.0\.0\.0\/8$/m);
    assert(!shown.stdout.includes(key));
    assert(!line.holds(key));
  });

  test('create and rotate print the HMAC key as JSON with --json; show omits it', async () => {
    const created = await line.json<Created>(
      ...['acme-client', 'create', '--name', 'json', '--domain', '10.0.0.0/8', '--rate', '7'],
    );
    assert.match(created.hmac_key, /^[\w-]{43}$/);
    assert.deepEqual(created.directories, ['http://127.0.0.1:8080/acme/local-ca/directory']);
    const rotated = await line.json<Created>('acme-client', 'rotate', 'json');
    assert.equal(rotated.id, created.id);
    assert.notEqual(rotated.kid, created.kid);
    assert.notEqual(rotated.hmac_key, created.hmac_key);
    const shown = await line.json<Record<string, unknown>>('acme-client', 'show', 'json');
    assert.deepEqual([shown.kid, shown.rate, shown.hmac_key], [rotated.kid, 7, undefined]);
  });

  test('update changes only the specified fields', async () => {
    const { id } = await line.json<Created>('acme-client', 'create', '--name', 'up', '--domain', 'a.example');
    const update = (...words: string[]) =>
      line.json<Record<string, unknown>>('acme-client', 'update', String(id), ...words);
    const changed = await update(
      '--domain',
      'b.example',
      '--domain',
      '*.c.example',
      '--expires-at',
      '2099-01-01',
    );
    assert.deepEqual(
      [changed.domains, changed.issuers, changed.expires_at],
      [['b.example', '*.c.example'], ['local-ca'], '2099-01-01T00:00:00Z'],
    );
    const limited = await update(
      '--rate',
      '3',
      '--allow-ip',
      '192.0.2.1',
      '--expires-at',
      'none',
      '--name',
      'new',
    );
    assert.deepEqual(
      [limited.rate, limited.allowed_networks, limited.expires_at, limited.name, limited.domains],
      [3, ['192.0.2.1'], null, 'new', ['b.example', '*.c.example']],
    );
    assert.equal((await update('--rate', 'none', '--allow-ip', '*', '--profile', 'none')).rate, null);
    const { stderr } = await line.done('acme-client', 'update', 'new', '--rate', 'none');
    assert.equal(stderr, `ACME client ${id} is unchanged.\n`);
  });

  test('a revoked client stays in the list until it is deleted', async () => {
    const { id } = await line.json<Created>(
      'acme-client',
      'create',
      '--name',
      'old',
      '--domain',
      'a.example',
    );
    const states = async () =>
      (await line.json<{ name: string; state: string }[]>('acme-client', 'list'))
        .filter(({ name }) => name === 'old')
        .map(({ state }) => state);
    assert.deepEqual(await states(), ['active']);
    assert.equal((await line.done('acme-client', 'revoke', 'old')).stderr, `Revoked ACME client ${id}.\n`);
    assert.deepEqual(await states(), ['revoked']);
    await line.refused(['acme-client', 'rotate', 'old'], /is revoked/);
    assert.equal((await line.done('acme-client', 'delete', 'old')).stderr, `Deleted ACME client ${id}.\n`);
    assert.deepEqual(await states(), []);
    const { stdout } = await line.done('acme-client', 'list');
    assert.match(stdout, /^ID +NAME +STATE +DOMAINS +ISSUERS +EXPIRES +LAST USED\n/);
  });
});

test('a list without clients says how to create one', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name', 'a', '--domain', 'a.example');
  const { stdout, stderr } = await line.done('acme-client', 'list');
  assert.deepEqual([stdout, stderr], ['', 'No ACME clients yet.\n  Try: vault acme-client create --help\n']);
});
