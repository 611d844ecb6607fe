/**
 * ACME clients in the document of `vault apply`: what is refused, what is created, changed and revoked, and what is
 * exported.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type CommandLine, commandLine } from '../../../harness/processes/command-line.ts';

type Client = Readonly<Record<string, unknown>> & { readonly name: string; readonly state: string };

suite('ACME clients of a desired state', () => {
  const undone: (() => unknown)[] = [];
  let line: CommandLine;
  const clients = () => line.json<Client[]>('acme-client', 'list');
  const apply = (document: string, ...words: string[]) =>
    line.done('apply', '--file', line.file(`version: 1\n${document}`), ...words);
  before(async () => {
    line = commandLine({ after: (undo) => undone.push(undo as () => unknown) });
    await line.done('certificate', 'create', '--name', 'web', '--domain', 'web.example');
  });
  after(async () => {
    for (const undo of undone.reverse()) await undo();
  });

  const refused: Readonly<Record<string, readonly [settings: string, stderr: RegExp]>> = {
    'an empty list of domains': ['{ domains: [] }', /acme_clients\.caddy\.domains: at least one pattern/],
    'an invalid domain pattern': ['{ domains: [a.*.example] }', /"a\.\*\.example" has "\*" in the middle/],
    'an unknown issuer': ['{ domains: [a.example], issuers: [none] }', /unknown issuer "none"/],
    'an unknown profile': [
      '{ domains: [a.example], profiles: [local-ca/x] }',
      /issuer local-ca has no profile "x"/,
    ],
    'an expiry in the past': [
      '{ domains: [a.example], expires_at: 2020-01-01T00:00:00Z }',
      /is not in the future/,
    ],
    'an HMAC key': ['{ domains: [a.example], hmac_key: x }', /hmac_key: unknown setting/],
    'a rate that is not a number': [
      '{ domains: [a.example], rate: fast }',
      /write a number of orders per hour, or none/,
    ],
  };
  for (const [what, [settings, stderr]] of Object.entries(refused)) {
    test(`${what} is rejected`, async () => {
      const file = line.file(`version: 1\nacme_clients:\n  caddy: ${settings}\n`);
      await line.refused(['apply', '--file', file], stderr);
      assert.deepEqual(await clients(), []);
    });
  }

  test('apply creates an ACME client, leaves it unchanged, updates it, exports it and revokes it', async () => {
    const document =
      'acme_clients:\n  caddy:\n    domains: ["*.example.com", 10.0.0.0/8]\n    validation: [dns-01]\n';
    const created = await apply(document);
    assert.match(created.stdout, /^\+ acme-client caddy\n/);
    assert.match(created.stderr, /^Print the key of ACME client caddy: vault acme-client rotate caddy$/m);
    assert.equal((await apply(document)).stdout, 'No changes.\n');
    const { hmac_key: key } = await line.json<{ hmac_key: string }>('acme-client', 'rotate', 'caddy');
    assert.match(key, /^[\w-]{43}$/);
    const exported = await line.done('export');
    assert.match(exported.stdout, /^acme_clients:\n {2}caddy:\n {4}domains:/m);
    assert(!exported.stdout.includes(key));
    assert.equal((await apply(exported.stdout.replace(/^version: 1\n/m, ''))).stdout, 'No changes.\n');

    const changed = await apply(`${document}    rate: 5\n`.replace('dns-01', ''));
    assert.match(changed.stdout, /^~ acme-client caddy\n[\s\S]*validation: \[dns-01\] → none[\s\S]*rate: 5/m);
    const [client] = await clients();
    assert.deepEqual([client?.rate, client?.validation], [5, []]);
    assert.match((await apply(`${document}    rate: none\n`)).stdout, /rate: 5 → none/);

    const certificate = 'certificates:\n  web: { domains: [web.example] }\n';
    const pruned = await apply(certificate, '--prune', '--yes');
    assert.match(pruned.stdout, /^- acme-client caddy: revokes it$/m);
    assert.deepEqual(
      (await clients()).map(({ state }) => state),
      ['revoked'],
    );
    assert.equal((await apply(certificate, '--prune', '--yes')).stdout, 'No changes.\n');
    assert(!(await line.done('export')).stdout.includes('acme_clients'));
    const file = line.file(`version: 1\n${document}`);
    await line.refused(
      ['apply', '--file', file],
      /is revoked and keeps its name; delete it with "vault acme-client delete"/,
    );
  });
});
