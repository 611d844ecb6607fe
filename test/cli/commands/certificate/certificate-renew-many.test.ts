/**
 * `vault certificate renew --all` and with filters: spread over time, confirmed on a terminal, and carried out by a
 * server.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  type CommandLine,
  commandLine,
  commandLineWithCa,
  commandWords,
} from '../../../harness/processes/command-line.ts';
import { needsTerminal, onTerminal } from '../../../harness/processes/terminal-session.ts';
import { serve } from '../../../harness/processes/vault-process.ts';

type Renewal = { readonly certificate: string; readonly status: string; readonly started_at: string | null };

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z`;

/** Certificates of a CA, issued by a server that is stopped then. */
async function issued(t: TestContext, ...names: string[]): Promise<CommandLine> {
  const line = await commandLineWithCa(t);
  const server = await serve(t, line.data);
  for (const name of names) {
    const create = `certificate create --name ${name} --domain ${name}.test --issuer ca --wait`;
    await line.done(...commandWords(create));
  }
  await server.end();
  return line;
}

async function open({ json }: CommandLine): Promise<string[]> {
  const all = await json<Renewal[]>('renewals', 'list');
  return all
    .filter(({ status }) => status !== 'succeeded')
    .map(({ certificate }) => certificate)
    .sort();
}

test('renew --all queues renewals one minute apart per CA; renew --name runs one of them immediately', async (t) => {
  const line = await issued(t, 'a', 'b', 'c');
  const { done, json } = line;
  await done(...commandWords('certificate create --name own --domain own.test'));
  await done(...commandWords('certificate create --name off --domain off.test'));
  await done(...commandWords('certificate update --name off --disable'));
  const first = await done(...commandWords('certificate renew --all'));
  assert.equal(first.stdout, '');
  assert.match(
    first.stderr,
    new RegExp(
      `^Queued 4 renewals; "vault serve" runs them\\. The last one starts by ${time}\\.\n` +
        'Skipped 1 certificate: imported or disabled\\.\n$',
    ),
  );
  assert.deepEqual(await open(line), ['a', 'b', 'c', 'own']);
  const waiting = (await done('renewals', 'list')).stdout.matchAll(/ waiting until (\S+): spread over time/g);
  const [later, sooner] = [...waiting].map(([, at = '']) => Date.parse(at));
  assert.equal((later ?? 0) - (sooner ?? 0), 60_000);
  const again = await done(...commandWords('certificate renew --all'));
  assert.equal(
    again.stderr,
    'Already queued or running: 4 renewals.\nSkipped 1 certificate: imported or disabled.\n',
  );
  await serve(t, line.data);
  const now = await done(...commandWords('certificate renew --name c --wait'));
  assert.match(now.stdout, /^c: version 2,/);
  const renewals = await json<Renewal[]>(...commandWords('renewals list --name b'));
  const { started_at } = renewals[0] ?? assert.fail();
  assert.ok(started_at === null || Date.parse(started_at) >= (sooner ?? 0), started_at ?? '');
  const events = await json<unknown[]>(...commandWords('audit list --action renewal.request --limit 1000'));
  assert.equal(events.length, 3 + 4);
});

test('filters select the certificates to renew', async (t) => {
  const line = commandLine(t);
  const { done } = line;
  await done(...commandWords('certificate create --name web --domain www.example.com'));
  await done(...commandWords('certificate create --name short --domain short.test --lifetime 20d'));
  await done(...commandWords('certificate create --name other --domain other.test --lifetime 20d'));
  const none = await done(...commandWords('certificate renew --expiring 1h'));
  assert.deepEqual([none.stdout, none.stderr], ['', 'No matching certificates.\n']);
  const one = await done(
    ...commandWords('certificate renew --all --expiring 30d --search SHORT --issuer local-ca'),
  );
  assert.equal(one.stderr, 'Queued 1 renewal; "vault serve" runs it.\n');
  assert.deepEqual(await open(line), ['short']);
});

test('missing, conflicting and unknown selections are rejected', async (t) => {
  const { done, refused } = commandLine(t);
  await done(...commandWords('certificate create --name web --domain www.example.com'));
  const cases: readonly (readonly [options: string, stderr: string, code: 1 | 2])[] = [
    ['', '--name is missing\n  Name a certificate, or choose many with --all or a filter.', 2],
    ['web --all', '--name and --all exclude each other\n  Use one of them.', 2],
    ['--name web --expiring 30d', '--name and --expiring exclude each other\n  Use one of them.', 2],
    [
      '--all --wait',
      '--wait needs one certificate\n  Name it with --name, or follow all renewals with "vault renewals list".',
      2,
    ],
    [
      '--status over',
      '--status: unknown status "over"\n  Use one of expired, not_yet_valid, expiring, pending, valid, disabled.',
      2,
    ],
    ['--issuer co', '--issuer: unknown issuer "co"\n  Use one of local-ca, imported.', 1],
  ];
  for (const [options, stderr, code] of cases) {
    await refused(commandWords(`certificate renew ${options}`), `vault: ${stderr}\n`, code);
  }
});

test(
  'many renewals require confirmation on a terminal, unless --yes is given; without one they do not',
  needsTerminal,
  async (t) => {
    const line = commandLine(t);
    for (let index = 0; index <= 10; index++) {
      await line.done('certificate', 'create', '--name', `c${index}`, '--domain', `c${index}.test`);
    }
    const no = await onTerminal(line.data, 'certificate renew --all', {
      dialog: [['Renew 11 certificates? [y/N] ', 'n\n']],
    });
    assert.equal(no.code, 1, no.said);
    assert.deepEqual(await open(line), []);
    const two = await onTerminal(line.data, 'certificate renew --search c1');
    assert.match(two.said, /Queued 2 renewals;/);
    const yes = await onTerminal(line.data, 'certificate renew --all --yes');
    assert.match(yes.said, /Queued 9 renewals; .*\nAlready queued or running: 2 renewals\.\n/);
    const script = await line.done(...commandWords('certificate renew --all'));
    assert.equal(script.stderr, 'Already queued or running: 11 renewals.\n');
  },
);
