/** kill -9 before every program that changes something: the pair always matches, and the next run recovers. */

import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  assertPair,
  leftovers,
  type Machine,
  machine,
  type Shell,
  shells,
} from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { isWhole, slice } from '../harness/slice.ts';
import { deadly, killedAt } from './kills.ts';
import { inEveryShell } from './places.ts';

const everything = ['mv', 'cp', 'rm', 'mkdir', 'ln', 'chmod', 'sync', 'curl'];

/** The shells take turns, so that each step runs in one of them; with VAULT_TEST_WHOLE=1 it runs in all. */
function isTurn(shell: Shell, step: number, part: number): boolean {
  if (isWhole) return step % 2 === part;
  const order: readonly Shell[] = (Object.keys(shells) as Shell[]).filter((name) => name !== 'sh');
  return (step + slice) % order.length === order.indexOf(shell);
}

async function everyStep(t: TestContext, shell: Shell, part: number): Promise<void> {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  deadly(client, everything);
  const reload = `echo x >>${client.home}/reloads`;
  const installed = await vault.install(client, ['--reload-command', reload]);
  assert.equal(installed.code, 0, installed.stderr);
  const [one, snapshot] = [client.file('tls.crt'), join(client.home, 'snapshot')];
  for (const part of ['vault', 'tls'])
    cpSync(join(client.home, part), join(snapshot, part), { recursive: true });
  await vault.renew();
  const seen = new Set<string>();
  for (let step = 1; ; step += 1) {
    if (!isTurn(shell, step, part)) continue;
    for (const part of ['vault', 'tls']) {
      rmSync(join(client.home, part), { recursive: true });
      cpSync(join(snapshot, part), join(client.home, part), { recursive: true, preserveTimestamps: true });
    }
    rmSync(join(client.home, 'reloads'), { force: true });
    if (!(await killedAt(client, step, shell, ['--run']))) break;
    assertPair(client);
    seen.add(client.file('tls.crt') === one ? 'old' : 'new');
    const next = await client.run(['--run']);
    assert.equal(next.code, 0, `after step ${step}: ${next.stderr}`);
    assertPair(client);
    assert.notEqual(client.file('tls.crt'), one, `step ${step}`);
    assert(existsSync(join(client.home, 'reloads')), `step ${step}: reloaded`);
    assert.deepEqual(leftovers(client), [], `step ${step}`);
    assert.doesNotMatch(readFileSync(client.copy().replace('install.sh', 'job'), 'utf8'), /vk_/);
  }
  assert.deepEqual([...seen], ['old', 'new']);
}

// In two parts where it runs whole, because of the time limit of a test.
for (const part of isWhole ? [0, 1] : [0])
  inEveryShell(
    `a run killed at any step leaves a matching pair, and the next one recovers (${part})`,
    (t, shell) => everyStep(t, shell, part),
  );

test('the same command completes an installation that was killed at any step', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const args = (client: Machine) => {
    const files = ['--file', 'fullchain.crt=tls.crt', '--file', 'private.key=tls.key'];
    const job = ['--certificate', 'web', '--destination', client.destination, '--schedule', '5 4 * * *'];
    return ['--server', vault.url, ...job, ...files];
  };
  const client = machine(t);
  deadly(client, ['mv', 'ln', 'crontab']);
  for (let step = 1; await killedAt(client, step, 'sh', args(client), vault.key); step += 1) {
    if (existsSync(join(client.destination, 'tls.crt'))) assertPair(client);
    const again = await vault.install(client, ['--schedule', '5 4 * * *']);
    assert.equal(again.code, 0, `after step ${step}: ${again.stderr}`);
    assertPair(client);
    assert.equal(client.crontab().split('\n').length, 2, client.crontab());
    for (const part of ['vault', 'tls', 'crontab']) rmSync(join(client.home, part), { recursive: true });
  }
});
