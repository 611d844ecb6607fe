/** Every list: a table that fits the terminal, complete elsewhere, and JSON for programs. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { widthOf } from '../../../src/cli/terminal/text-width.ts';
import { problem } from '../../harness/ca/scripted-acme.ts';
import { type CommandLine, commandLineWithCa, commandWords } from '../../harness/processes/command-line.ts';
import { needsTerminal, onTerminal } from '../../harness/processes/terminal-session.ts';
import { vault } from '../../harness/processes/vault-process.ts';

const domains = Array.from({ length: 40 }, (_, index) => `host-${index}.example.com`);
const longName = `a-${'long-'.repeat(20)}name`;
const longText = 'the CA has much to say '.repeat(20).trim();

/** Each list, its first title, and a text that only the complete table has. */
const lists = [
  { command: 'certificate list', title: 'NAME', whole: domains.join(' ') },
  { command: 'certificate list --deleted', title: 'NAME', whole: domains.join(' ') },
  { command: 'renewals list', title: 'ID', whole: longText },
  { command: 'issuer list', title: 'NAME', whole: `${'x'.repeat(60)}@example.com` },
  { command: 'acme-client list', title: 'ID', whole: domains.join(' ') },
  { command: 'enrollment list', title: 'ID', whole: `${longName} wide` },
  { command: 'acme-account list', title: 'ID', whole: `${'x'.repeat(60)}@example.com` },
  { command: 'dns-provider list', title: 'NAME', whole: domains.join(' ') },
  { command: 'notification list', title: 'CHANNEL', whole: domains.join(' ') },
  { command: 'notification log', title: 'QUEUED', whole: 'connection refused' },
  { command: 'deploy-target list', title: 'TARGET', whole: `shop-${'x'.repeat(50)}` },
  { command: `deploy-target show shop-${'x'.repeat(50)}`, title: 'CERTIFICATE', whole: 'connection refused' },
  { command: 'admin list', title: 'NAME', whole: `alice-${'x'.repeat(50)}` },
  { command: 'audit list --limit 1000', title: 'ID', whole: domains.slice(0, 3).join('","') },
] as const;

suite('lists', () => {
  const undone: (() => unknown)[] = [];
  let line: CommandLine;
  before(async () => {
    const made = await commandLineWithCa({ after: (undo) => undone.push(undo as () => unknown) });
    line = made;
    const { ca, done, run, file } = made;
    const all = domains.flatMap((name) => ['--domain', name]);
    await done('certificate', 'create', '--name', 'wide', ...all);
    await done('certificate', 'create', '--name', longName, '--domain', 'short.example.com');
    await done('certificate', 'create', '--name', 'gone', ...all);
    await done('certificate', 'delete', '--name', 'gone');
    const contact = `${'x'.repeat(60)}@example.com`;
    await done('issuer', 'update', '--name', 'ca', '--email', contact);
    ca.override('newOrder', problem('rejectedIdentifier', `\u001b[2J${longText}`));
    const failing = commandWords('certificate create --name fails --domain fails.test --issuer ca --wait');
    assert.equal((await run(...failing)).code, 1);
    await done('acme-client', 'create', '--name', 'wide', ...all);
    const rights = ['--certificate', 'wide', '--certificate', longName, '--expires-at', '1d'];
    await done('enrollment', 'create', '--name', `rack-${'x'.repeat(50)}`, ...rights);
    const zones = domains.flatMap((name) => ['--zone', name]);
    await done('dns-provider', 'add', '--name', 'dns', '--type', 'manual', ...zones);
    const only = domains.flatMap((name) => ['--certificate', name]);
    const url = file('url: http://127.0.0.1:9/\n');
    await done('notification', 'add', 'webhook', '--channel', 'ops', '--secret-file', url, ...only);
    await run(...commandWords('notification test --channel ops'));
    const shop = `shop-${'x'.repeat(50)}`;
    const settings = file(`url: http://127.0.0.1:9/\nsecret: whsec_${'k3y'.padEnd(32, '0')}\n`);
    const installed = ['--certificate', 'wide', '--certificate', longName];
    await done('deploy-target', 'add', shop, '--type=webhook', '--secret-file', settings, ...installed);
    assert.equal((await run('deploy-target', 'run', shop)).code, 1);
    const admin = commandWords(`admin create --password-stdin --name alice-${'x'.repeat(50)}`);
    const input = 'correct horse battery staple';
    assert.equal((await vault([...admin, '--data-dir', made.data], { input })).code, 0);
    for (const name of ['東京の鍵', 'x']) {
      const key = ['--scope', 'certificates:read', '--certificate', 'wide', '--certificate', longName];
      await done('api-key', 'create', '--name', name, ...key);
    }
  });
  after(async () => {
    for (const undo of undone.reverse()) await undo();
  });

  for (const { command, title, whole } of lists) {
    test(`vault ${command} fits the terminal`, needsTerminal, async () => {
      for (const columns of [80, 120]) await assertFits(line, command, title, columns);
    });

    test(`vault ${command} prints complete entries, one per line, when stdout is not a terminal`, async () => {
      const { stdout } = await line.done(...commandWords(command));
      const rows = await line.json<unknown[]>(...commandWords(command));
      assert.ok(rows.length > 0);
      assert.equal(stdout.trimEnd().split('\n').length, rows.length + 1, stdout);
      assert.ok(stdout.includes(whole), stdout);
      assert.equal(stdout, stripVTControlCharacters(stdout));
    });
  }

  test(
    'vault api-key list prints JSON by default, and a table that fits with --table',
    needsTerminal,
    async () => {
      const json = (await line.done('api-key', 'list')).stdout;
      assert.equal((await line.done('api-key', 'list', '--json')).stdout, json);
      assert.deepEqual(
        (JSON.parse(json) as { name: string }[]).map(({ name }) => name),
        ['東京の鍵', 'x'],
      );
      const { stdout } = await line.done('api-key', 'list', '--table');
      assert.match(
        stdout,
        /^ID {2}NAME +STATE +ROLE +SCOPES +CERTIFICATES +PROFILES +CLIENT CERTIFICATE +EXPIRES +LAST USED\n/,
      );
      assert.match(stdout, /\n2 {3}x +active +- /);
      assert.match(stdout, new RegExp(`certificates:read  ${longName} wide`));
      for (const columns of [80, 120]) await assertFits(line, 'api-key list --table', 'ID', columns);
      await line.refused(
        ['api-key', 'list', '--table', '--json'],
        'vault: --json and --table exclude each other\n  Use one of them.\n',
        2,
      );
    },
  );

  test(
    'a long list of domains is shortened to the first ones and how many more there are',
    needsTerminal,
    async () => {
      const { said } = await onTerminal(line.data, 'certificate list', { columns: 132 });
      assert.match(said, /\nwide +valid .* host-0\.example\.com, \+39\n/);
    },
  );
});

async function assertFits({ data }: CommandLine, command: string, title: string, columns: number) {
  const { said, code } = await onTerminal(data, command, { columns });
  assert.equal(code, 0, said);
  const shown = said.trimEnd().split('\n');
  assert.ok(shown[0]?.startsWith(title), said);
  assert.equal(said, stripVTControlCharacters(said));
  for (const one of shown) assert.ok(widthOf(one) <= columns, `${widthOf(one)} columns: ${one}`);
}
