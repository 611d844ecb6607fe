/** `vault certificate list` with filters: each alone, all together, and values that do not exist. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { encodePem } from '../../../../src/crypto/pem.ts';
import { identifier, makeChain } from '../../../harness/ca/private-chain.ts';
import {
  type CommandLine,
  commandLineWithCa,
  commandWords,
} from '../../../harness/processes/command-line.ts';

suite('certificate list', () => {
  const undone: (() => unknown)[] = [];
  let line: CommandLine;
  before(async () => {
    line = await commandLineWithCa({ after: (undo) => undone.push(undo as () => unknown) });
    const create = (options: string) => line.done(...commandWords(`certificate create ${options}`));
    await create('--name web --domain www.Example.com --domain shop.example.net');
    await create('--name short --domain short.example.com --lifetime 20d');
    await create('--name api --domain api.example.org --lifetime 20d');
    await create('--name waits --domain waits.example.com --issuer ca');
    await create('--name off --domain off.example.com --lifetime 20d');
    await line.done(...commandWords('certificate update --name off --disable'));
    const { intermediate, leaf } = await makeChain({ leaf: { identifiers: [identifier('brought.test')] } });
    const chain = [leaf, intermediate]
      .map(({ certificate }) => encodePem('CERTIFICATE', certificate))
      .join('');
    const key = encodePem('PRIVATE KEY', leaf.privateKey.expose());
    const files = ['--fullchain', line.file(chain), '--private-key', line.file(key)];
    await line.done('certificate', 'import', '--name', 'brought', ...files);
  });
  after(async () => {
    for (const undo of undone.reverse()) await undo();
  });

  const cases: readonly (readonly [options: string, names: string])[] = [
    ['', 'api brought off short waits web'],
    ['--expiring 30d', 'api off short'],
    ['--expiring 1h', ''],
    ['--expiring 10y', 'api off short web'],
    ['--status valid', 'api brought short web'],
    ['--status pending', 'waits'],
    ['--status disabled', 'off'],
    ['--status expired', ''],
    ['--issuer local-ca', 'api off short web'],
    ['--issuer ca', 'waits'],
    ['--issuer imported', 'brought'],
    ['--search EXAMPLE.com', 'off short waits web'],
    ['--search sho', 'short web'],
    ['--search %', ''],
    ['--search=', 'api brought off short waits web'],
    ['--expiring 30d --status valid --issuer local-ca --search example.com', 'short'],
    ['--expiring 30d --issuer ca', ''],
    ['--expiring 99y --issuer imported', 'brought'],
  ];
  for (const [options, names] of cases) {
    test(`certificate list ${options} prints: ${names || 'none'}`, async () => {
      const words = commandWords(`certificate list ${options}`);
      const listed = await line.json<{ name: string }[]>(...words);
      assert.equal(listed.map(({ name }) => name).join(' '), names);
      const { stdout, stderr } = await line.done(...words);
      const shown = stdout.split('\n').slice(1, -1);
      assert.equal(shown.map((row) => row.split(' ')[0]).join(' '), names);
      assert.equal(stderr, names === '' ? 'No matching certificates.\n' : '');
    });
  }

  const refusals: readonly (readonly [options: string, stderr: string, code: 1 | 2])[] = [
    [
      '--status over',
      '--status: unknown status "over"\n  Use one of expired, not_yet_valid, expiring, pending, valid, disabled.',
      2,
    ],
    ['--issuer co', '--issuer: unknown issuer "co"\n  Use one of ca, local-ca, imported.', 1],
    [
      '--expiring 30',
      '--expiring: "30" is not a duration\n  Use a number with m, h, d or y, such as 30d.',
      2,
    ],
    ['--deleted --search x', '--deleted and --search exclude each other\n  Use one of them.', 2],
  ];
  for (const [options, stderr, code] of refusals) {
    test(`certificate list ${options} is rejected`, async () => {
      await line.refused(commandWords(`certificate list ${options}`), `vault: ${stderr}\n`, code);
    });
  }
});
