/**
 * `vault renewals list`: what was renewed, what is under way and what failed, as people and as programs want to know.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problem } from '../../harness/ca/scripted-acme.ts';
import { commandLineWithCa, commandWords } from '../../harness/processes/command-line.ts';

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z`;

test('renewals are listed newest first, and filtered by certificate, failure and limit', async (t) => {
  const { ca, done, run, json } = await commandLineWithCa(t);
  assert.deepEqual(await run('renewals', 'list'), {
    code: 0,
    stdout: '',
    stderr: 'No renewals yet.\n',
  });
  assert.deepEqual(await run('renewals', 'list', '--failed'), {
    code: 0,
    stdout: '',
    stderr: 'No failed renewals.\n',
  });
  ca.override('newOrder', problem('rejectedIdentifier', 'not \u001b[1mweb.test'));
  assert.equal(
    (await run(...commandWords('certificate create --name web --domain web.test --issuer ca --wait'))).code,
    1,
  );
  await done(...commandWords('certificate renew --name web --wait'));
  await done(...commandWords('certificate create --name api --domain api.test --issuer ca'));
  const { stdout } = await done('renewals', 'list');
  assert.match(
    stdout,
    new RegExp(
      '^ID  CERTIFICATE  STATUS     REQUESTED +FINISHED +RESULT\n' +
        `3   api          queued     ${time} +- +-\n` +
        `2   web          succeeded  ${time} +${time} +version 1\n` +
        String.raw`1   web          failed     ${time} +${time} +not +\[1mweb\.test\n$`,
    ),
  );
  const ids = async (...options: string[]) =>
    (await json<{ id: number }[]>('renewals', 'list', ...options)).map(({ id }) => id);
  assert.deepEqual(await ids(), [3, 2, 1]);
  assert.deepEqual(await ids('--failed'), [1]);
  assert.deepEqual(await ids('--name', 'web'), [2, 1]);
  assert.deepEqual(await ids('--name', 'web', '--failed', '--limit', '1'), [1]);
  assert.deepEqual(await ids('--limit', '2'), [3, 2]);
  const [last] = await json<Record<string, unknown>[]>('renewals', 'list', '--failed');
  assert.deepEqual(Object.keys(last ?? {}), [
    ...['id', 'certificate', 'status', 'requested_at', 'started_at', 'finished_at', 'version', 'error'],
  ]);
  const { stdout: shown } = await done('certificate', 'show', '--name', 'api');
  assert.match(shown, /\nRenewing +queued\n/);
});

test('an invalid limit and an unknown certificate are rejected', async (t) => {
  const { done, refused } = await commandLineWithCa(t);
  await done(...commandWords('certificate create --name web --domain web.test'));
  for (const limit of ['0', '1001', 'x', '1.5', '']) {
    const option = `--limit=${limit}`;
    await refused(
      ['renewals', 'list', option],
      /^vault: --limit: .*is not a number from 1 to 1000\n {2}Use a number such as 50\.\n$/,
      2,
    );
  }
  await refused(
    ['renewals', 'list', '--name', 'wob'],
    'vault: Unknown certificate "wob".\n  Did you mean "web"?\n',
  );
});
