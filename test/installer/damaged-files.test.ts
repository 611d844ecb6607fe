/**
 * A table of every file that the installer keeps or writes, every state that a crash, a full disk or a person can leave
 * it in, and every action. Each cell either works or fails with a message. No cell hangs, exits with an undocumented
 * code, mixes keys and certificates, loses lines of the crontab or follows a link.
 */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { assertPair, type Machine, machine, type Shell, shells } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { isWhole, slice } from '../harness/slice.ts';
import { inEveryShell } from './places.ts';

const foreign = '1 2 * * * /usr/bin/keep-me\n';

/** The files, as paths below the machine's home; `JOB` is the job's id. */
const files = [
  'vault/jobs/JOB/job',
  'vault/jobs/JOB/api-key',
  'vault/jobs/JOB/install.sh',
  'vault/jobs/JOB/ca.pem',
  'vault/jobs/JOB/old',
  'vault/state/JOB/state',
  'vault/state/JOB/pending',
  'vault/state/JOB/swapping',
  'vault/state/JOB/last-run',
  'vault/state/JOB/lock',
  'vault/state/JOB/previous',
  'vault/state/install.lock',
  'vault/state/crontab.lock',
  'crontab',
  'tls/tls.crt',
  'tls/tls.key',
  'tls',
] as const;

type File = (typeof files)[number];

const states = {
  missing: (path: string) => rmSync(path, { recursive: true, force: true }),
  empty: (path: string) => {
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, '');
  },
  'cut short': (path: string) => {
    if (existsSync(path) && statSync(path).isFile()) truncateSync(path, Math.floor(statSync(path).size / 2));
    else {
      rmSync(path, { recursive: true, force: true });
      writeFileSync(path, 'half of a li');
    }
  },
  'a directory': (path: string) => {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
  },
  'a link to another file': (path: string, elsewhere: string) => {
    rmSync(path, { recursive: true, force: true });
    symlinkSync(elsewhere, path);
  },
  'a pipe without a writer': (path: string) => {
    rmSync(path, { recursive: true, force: true });
    execFileSync('mkfifo', [path]);
  },
} as const;

type State = keyof typeof states;

const actions = ['run', 'status', 'install', 'uninstall'] as const;

type Action = (typeof actions)[number];

type Cell = { readonly file: File; readonly state: State; readonly action: Action };

/**
 * The expected result of an action with a damaged file: `works` or `refused`. Cells where either is fine are not
 * listed.
 */
const works: readonly [File, State, Action][] = [
  ['vault/state/JOB/state', 'missing', 'run'],
  ['vault/state/JOB/state', 'empty', 'run'],
  ['vault/state/JOB/state', 'cut short', 'run'],
  ['vault/state/JOB/pending', 'empty', 'run'],
  ['vault/state/JOB/swapping', 'empty', 'run'],
  ['vault/state/JOB/lock', 'empty', 'run'],
  ['vault/state/JOB/lock', 'cut short', 'run'],
  ['vault/state/install.lock', 'empty', 'install'],
  ['vault/state/crontab.lock', 'empty', 'uninstall'],
  ['vault/jobs/JOB/old', 'a directory', 'run'],
  ['vault/jobs/JOB/install.sh', 'empty', 'install'],
  ['vault/jobs/JOB/api-key', 'missing', 'install'],
  ['vault/jobs/JOB/job', 'cut short', 'install'],
  ['vault/jobs/JOB/job', 'empty', 'install'],
  ['crontab', 'missing', 'run'],
  ['crontab', 'missing', 'install'],
  ['tls', 'missing', 'run'],
  ['tls/tls.crt', 'missing', 'run'],
  ['tls/tls.crt', 'cut short', 'run'],
  ['tls/tls.key', 'empty', 'run'],
  ['tls/tls.key', 'a link to another file', 'run'],
];
const refused: readonly [File, State, Action][] = [
  ['vault/jobs/JOB/job', 'empty', 'run'],
  ['vault/jobs/JOB/job', 'cut short', 'run'],
  ['vault/jobs/JOB/job', 'cut short', 'status'],
  ['vault/jobs/JOB/api-key', 'empty', 'run'],
  ['vault/jobs/JOB/api-key', 'missing', 'status'],
  ['vault/jobs/JOB/install.sh', 'empty', 'status'],
  ['vault/jobs/JOB/install.sh', 'cut short', 'status'],
  ['vault/state/JOB/state', 'missing', 'status'],
  ['vault/state/JOB/state', 'a directory', 'run'],
  ['vault/state/JOB/pending', 'a pipe without a writer', 'run'],
  ['vault/state/JOB/swapping', 'a directory', 'run'],
  ['vault/state/JOB/last-run', 'missing', 'status'],
  ['vault/state/JOB/last-run', 'empty', 'status'],
  ['crontab', 'missing', 'status'],
  ['crontab', 'empty', 'status'],
  ['tls', 'missing', 'status'],
  ['tls', 'empty', 'run'],
  ['tls/tls.crt', 'missing', 'status'],
  ['tls/tls.crt', 'a pipe without a writer', 'status'],
  ['tls/tls.key', 'cut short', 'status'],
  ['tls/tls.key', 'a directory', 'run'],
];

// Only the crontab program reads the crontab, so it is always a regular file.
const cells: readonly Cell[] = files.flatMap((file) =>
  (Object.keys(states) as State[])
    .filter((state) => file !== 'crontab' || !/^a /.test(state))
    .flatMap((state) => actions.map((action) => ({ file, state, action }))),
);

const isNamed = ({ file, state, action }: Cell, list: typeof works) =>
  list.some(([a, b, c]) => a === file && b === state && c === action);

/**
 * The shells take turns: each cell listed above runs in one shell, and every fourth one of the others, another in
 * another commit. With VAULT_TEST_WHOLE=1 every cell runs in every shell.
 */
function share(shell: Shell, action: Action): readonly Cell[] {
  const order: readonly Shell[] = (Object.keys(shells) as Shell[]).filter((name) => name !== 'sh');
  const turn = order.indexOf(shell);
  return cells.filter((cell, at) => {
    const isTurn = isNamed(cell, [...works, ...refused])
      ? (at + slice) % order.length === turn
      : (at + slice) % (4 * order.length) === 4 * turn;
    return cell.action === action && (isWhole || isTurn);
  });
}

const codes = [0, 1, 2, 10, 11, 12, 13, 14, 75];

for (const action of actions)
  inEveryShell(`damaged files are tolerated or reported: ${action}`, (t, shell) =>
    tryShare(t, shell, action),
  );

async function tryShare(t: TestContext, shell: Shell, action: Action): Promise<void> {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  writeFileSync(join(client.home, 'crontab'), foreign);
  const installed = await vault.install(client, ['--schedule', '5 4 * * *']);
  assert.equal(installed.code, 0, installed.stderr);
  const [job = ''] = client.jobs();
  const parts = ['vault', 'tls', 'crontab'];
  const snapshot = join(client.home, 'snapshot');
  for (const part of parts) cpSync(join(client.home, part), join(snapshot, part), { recursive: true });
  const elsewhere = join(client.home, 'elsewhere');
  for (const cell of share(shell, action)) {
    for (const part of parts) {
      rmSync(join(client.home, part), { recursive: true, force: true });
      cpSync(join(snapshot, part), join(client.home, part), { recursive: true, preserveTimestamps: true });
    }
    writeFileSync(elsewhere, 'not ours\n', { mode: 0o640 });
    const path = join(client.home, cell.file.replace('JOB', job));
    states[cell.state](path, elsewhere);
    await tryCell(cell, vault, client, { job, elsewhere });
  }
}

async function tryCell(
  cell: Cell,
  vault: ClientVault,
  client: Machine,
  { job, elsewhere }: { readonly job: string; readonly elsewhere: string },
): Promise<void> {
  const { file, state, action } = cell;
  const environment = { CERTIFICATE_VAULT_FETCH_TRIES: '1' };
  // A run that hangs is killed by a signal, whose code is not in the list below.
  const signal = AbortSignal.timeout(60_000);
  const hung = () => assert.fail(`${file} ${state}, ${action}: hangs`);
  const outcome = await (action === 'install'
    ? vault.install(client, ['--schedule', '6 6 * * *'], { environment, signal })
    : client.run([`--${action}`, job], { environment, signal })
  ).catch(hung);
  const summary = `${file} ${state}, ${action}: ${outcome.code} ${outcome.stderr}${outcome.stdout}`;
  assert(outcome.code !== null && codes.includes(outcome.code), summary);
  if (isNamed(cell, works)) assert.equal(outcome.code, 0, summary);
  if (isNamed(cell, refused)) assert.notEqual(outcome.code, 0, summary);
  if (outcome.code !== 0) {
    assert.match(outcome.stderr + outcome.stdout, /certificate-vault: |problem {6}|last run/, summary);
    // The raw error of a program alone is not a message for people.
    assert.doesNotMatch(outcome.stderr, /syntax error|unbound|parameter not set|not found/, summary);
  }
  assert.equal(readFileSync(elsewhere, 'utf8'), 'not ours\n', summary);
  assert.equal(statSync(elsewhere).mode & 0o777, 0o640, summary);
  if (file !== 'crontab') assert(client.crontab().startsWith(foreign), summary);
  const leaf = join(client.destination, 'tls.crt');
  const isFile = (name: string) => {
    const at = join(client.destination, name);
    return existsSync(at) && statSync(at).isFile();
  };
  // After a successful run both files exist and match.
  if (outcome.code === 0 && (action === 'run' || action === 'install')) {
    assert(existsSync(dirname(leaf)), summary);
    assertPair(client);
  } else if (!file.startsWith('tls') && isFile('tls.crt')) assertPair(client);
  if (action === 'uninstall' && outcome.code !== 0 && !file.startsWith('vault/jobs'))
    assert(existsSync(client.copy(job)), summary);
}
