/** The deployer: which certificates are installed when, how failures are retried, and what stops an installation. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute, second } from '../../src/base/duration.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { removeDeployTarget } from '../../src/domain/deploy-targets/deploy-targets.ts';
import { runDeployer } from '../../src/jobs/deployer.ts';
import { type OutsideDatabase, outside, refuse } from '../harness/database/outside-database.ts';
import { eventually } from '../harness/eventually.ts';
import { eventsOf, makePending } from '../harness/http/fixtures.ts';
import { status, webhookReceiver } from '../harness/http/webhook-receiver.ts';
import { giveVersion, makeCertificate } from '../harness/issuance/renewal-fixtures.ts';
import { addTarget, addWebhookTarget, onTarget, proxmoxNode } from '../harness/targets/deployed.ts';
import { testVault } from '../harness/test-vault.ts';

const look = 5 * second;

/** A vault with the certificate `web`, and a receiver for webhook targets. */
async function scene(t: TestContext) {
  const opened = await testVault(t);
  const { vault, world, dataDir } = opened;
  const receiver = await webhookReceiver(t);
  const { received, answers } = receiver;
  await makeCertificate(vault, 'web');
  const stop = new AbortController();
  const start = (context = vault): Promise<void> => {
    const job = runDeployer(context, stop.signal);
    t.after(async () => {
      stop.abort();
      await job;
    });
    return job;
  };
  /** Lets time pass while nothing is being installed, until the condition holds. */
  const until = (what: string, holds: () => boolean, step = look) =>
    eventually(what, () => {
      if (holds()) return true;
      // The sleeper is the deployer: an installation has a longer one for its time limit.
      if (world.asleep === 1 && world.soonest <= look) world.advance(step);
      return undefined;
    });
  const requested = (count: number, step = look) =>
    until(`request ${count}`, () => received.length >= count, step);
  /** Waits without moving the clock. */
  const stored = (what: string, holds: (view: Awaited<ReturnType<typeof onTarget>>) => boolean) =>
    eventually(what, async () => {
      const view = await onTarget(vault, 'hook');
      return holds(view) && view;
    });
  const failed = async (attempts: number) => {
    await requested(attempts);
    return stored(`failure ${attempts} is stored`, (view) => view.attempts === attempts);
  };
  const deployments = () =>
    outside(dataDir, (db) => db.prepare('select * from deployments order by id').all()) as Record<
      string,
      unknown
    >[];
  /** Responses that the test gives later. */
  const hold = (count: number): ServerResponse[] => {
    const held: ServerResponse[] = [];
    for (let at = 0; at < count; at += 1) answers.push((response) => held.push(response));
    return held;
  };
  const fail = (count: number) => answers.push(...Array.from({ length: count }, () => status(500)));
  const url = receiver.url;
  return {
    ...{ ...opened, receiver, received, answers, url, stop, start, until, requested, stored },
    ...{ failed, fail, hold, deployments },
  };
}

const versions = (received: readonly { readonly json: object }[]) =>
  received.map(({ json }) => (json as { readonly version?: unknown }).version);

/** Copies the first row of a table; a certificate gets this name, and the row of a target one of the copies. */
function copyRows(db: OutsideDatabase, table: string, count: number, name = 'name'): void {
  const own: Record<string, string> = { id: 'n', name, certificate_id: 'n' };
  const [first] = db.prepare(`select * from ${table} limit 1`).all() as object[];
  const columns = Object.keys(first ?? {});
  db.exec(`with recursive numbers (n) as (select 1001 union all select n + 1 from numbers where n < ${1000 + count})
    insert into ${table} (${columns.join(', ')})
    select ${columns.map((column) => own[column] ?? column).join(', ')}
    from numbers, (select * from ${table} order by id limit 1) as first`);
}

suite('a certificate on a target', () => {
  test('is installed immediately and again after its renewal, and not in between', async (t) => {
    const { vault, received, url, start, until, requested, stored, world } = await scene(t);
    await addWebhookTarget(vault, url);
    start();
    await requested(1);
    const first = await stored('the installation is stored', ({ state }) => state === 'current');
    assert.equal(first.next_attempt_at, null, 'a webhook cannot be asked what is installed');
    const after = world.now() + 2 * day;
    await until('two days later', () => world.now() >= after, hour);
    assert.deepEqual(versions(received), [1]);
    await giveVersion(vault, 'web');
    await requested(2);
    assert.deepEqual(versions(received), [1, 2]);
    await stored('the renewal is stored', ({ state, version }) => state === 'current' && version === 2);
  });

  test('is checked once a day if the target can be asked, and installed again if it was replaced', async (t) => {
    const { vault, dataDir, start, until, world } = await scene(t);
    const { settings, requests, replace } = await proxmoxNode(t);
    await addTarget(vault, { name: 'hook', type: 'proxmox' }, settings);
    start();
    await until('the installation', () => requests.length === 1);
    const installed = world.now();
    await until('the check', () => requests.length === 2, 10 * minute);
    const waited = world.now() - installed;
    assert(waited >= 0.9 * day && waited <= 1.1 * day + 20 * minute, `${waited / hour} h`);
    replace();
    await until('the repair', () => requests.length === 4, hour);
    assert.deepEqual(requests, ['upload', 'ask', 'ask', 'upload']);
    await eventually('it is current', async () => (await onTarget(vault, 'hook')).state === 'current');
    assert.equal(eventsOf(dataDir, 'certificate.deploy').length, 2, 'no key leaves for a check');
    assert.equal(eventsOf(dataDir, 'deployment.update').length, 0, 'the installed version is the same');
  });

  test('waits for its first version', async (t) => {
    const { vault, received, url, start, requested } = await scene(t);
    await makePending(vault, 'late');
    await addWebhookTarget(vault, url, { certificates: ['late'] });
    start();
    await eventually('it is not due', async () => {
      const view = await onTarget(vault, 'hook', 'late');
      return view.next_attempt_at === null;
    });
    assert.deepEqual(received, []);
    await giveVersion(vault, 'late');
    await requested(1);
    assert.deepEqual(versions(received), [1]);
  });
});

suite('a failed installation', () => {
  test('is retried after 30 seconds, 5 and 30 minutes, 2 hours and 6 hours, a tenth more or less', async (t) => {
    const { vault, world, url, start, fail, failed } = await scene(t);
    await addWebhookTarget(vault, url);
    fail(7);
    start();
    const delays = [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 6 * hour];
    for (const [at, delay] of delays.entries()) {
      const { next_attempt_at, error, state } = await failed(at + 1);
      assert.equal(state, 'failing');
      assert.match(error ?? '', /responded with 500/);
      const wait = Date.parse(next_attempt_at ?? '') - world.now();
      assert(wait >= 0.9 * delay && wait <= 1.1 * delay, `attempt ${at + 2} after ${wait} ms`);
      world.advance(wait);
    }
    await failed(delays.length + 1);
  });

  test('is not retried before the time that the target requests, up to a day', async (t) => {
    const { vault, world, url, start, answers, failed } = await scene(t);
    await addWebhookTarget(vault, url);
    answers.push(status(503, { 'Retry-After': '7200' }), status(503, { 'Retry-After': '400000' }));
    start();
    const first = await failed(1);
    assert.equal(Date.parse(first.next_attempt_at ?? '') - world.now(), 2 * hour);
    world.advance(2 * hour);
    const second = await failed(2);
    assert.equal(Date.parse(second.next_attempt_at ?? '') - world.now(), day);
  });

  test('makes the deployment failing if it is the second in a row, and a success clears it', async (t) => {
    const { vault, dataDir, url, start, requested, stored, fail, deployments } = await scene(t);
    await addWebhookTarget(vault, url);
    start();
    await requested(1);
    await stored('the installation', ({ state }) => state === 'current');
    fail(2);
    await giveVersion(vault, 'web');
    const errors: unknown[] = [];
    for (const attempts of [1, 2]) {
      await requested(1 + attempts);
      await stored(`failure ${attempts}`, (view) => view.attempts === attempts);
      errors.push(deployments()[0]?.error);
    }
    assert.equal(errors[0], null, 'one failure may pass by itself');
    assert.match(String(errors[1]), /responded with 500/);
    await requested(4);
    await stored('the recovery', ({ state }) => state === 'current');
    assert.partialDeepStrictEqual(deployments(), [{ version: 2, error: null }]);
    const news = eventsOf(dataDir, 'deployment.update');
    assert.deepEqual(
      news.map(({ detail: { error, version, previous } }) => ({ error, version, previous })),
      [
        { error: true, version: 1, previous: { error: false } },
        {
          error: false,
          version: 2,
          previous: {
            error: true,
            version: 1,
            fingerprint_sha256: news[0]?.detail.fingerprint_sha256,
          },
        },
      ],
    );
    assert.equal(news[0]?.detail.deployment, 'deploy-target:hook');
  });

  test('is retried immediately after a renewal, however long the wait is', async (t) => {
    const { vault, world, received, url, start, fail, failed, requested, stored } = await scene(t);
    await addWebhookTarget(vault, url);
    fail(3);
    start();
    for (const attempts of [1, 2, 3]) {
      const { next_attempt_at } = await failed(attempts);
      if (attempts < 3) world.advance(Date.parse(next_attempt_at ?? '') - world.now());
    }
    const from = world.now();
    await giveVersion(vault, 'web');
    await requested(4);
    assert(world.now() - from < 20 * minute, 'the wait was 30 minutes');
    assert.deepEqual(versions(received), [1, 1, 1, 2]);
    await stored('it is current', ({ state, error }) => state === 'current' && error === null);
  });

  test('tells why if the settings cannot be read or the type is unknown, and others are installed', async (t) => {
    const { vault, dataDir, received, url, start, until } = await scene(t);
    const cases: Record<string, [string, RegExp]> = {
      sealed: [
        "update deploy_targets set sealed_settings = cast(sealed_settings || x'00' as blob) where name = 'sealed'",
        /^the settings of the deploy target cannot be read; replace them$/,
      ],
      newer: [
        "update deploy_targets set type = 'ssh' where name = 'newer'",
        /^the settings of the deploy target cannot be read; replace them$/,
      ],
      typed: [
        "update deploy_targets set type = 'webhok' where name = 'typed'",
        /^unknown deploy target type "webhok"$/,
      ],
    };
    for (const [name, [sql]] of Object.entries(cases)) {
      await addWebhookTarget(vault, url, { name });
      outside(dataDir, (db) => db.exec(sql));
    }
    await addWebhookTarget(vault, url);
    start();
    await until('the installation on the target that works', () => received.length === 1);
    for (const [name, [, reason]] of Object.entries(cases)) {
      const { error } = await eventually(name, async () => {
        const view = await onTarget(vault, name);
        return view.attempts > 0 && view;
      });
      assert.match(error ?? '', reason);
    }
  });
});

suite('the private key', () => {
  test('leaves after the audit log has the deployment, and not if it cannot be recorded', async (t) => {
    const { vault, dataDir, received, answers, url, start, requested, stored } = await scene(t);
    await addWebhookTarget(vault, url);
    const full = refuse(dataDir, 'insert', 'audit_events', { when: "new.action = 'certificate.deploy'" });
    let recorded = 0;
    answers.push((response) => {
      recorded = eventsOf(dataDir, 'certificate.deploy').length;
      response.writeHead(204).end();
    });
    start();
    const { error } = await stored('the failure', ({ attempts }) => attempts === 1);
    assert.equal(error, 'internal error; see the log of the vault');
    assert.deepEqual(received, []);
    full.allow();
    await requested(1);
    assert.equal(recorded, 1);
    const [event] = eventsOf(dataDir, 'certificate.deploy');
    assert.partialDeepStrictEqual(event, {
      ...{ actor: 'system', resource: 'certificate:web' },
      detail: { deploy_target: 'hook', type: 'webhook', version: 1 },
    });
  });
});

suite('an installation that takes long', () => {
  test('delays only further certificates of the same target', async (t) => {
    const { vault, world, received, url, start, until, hold } = await scene(t);
    await makeCertificate(vault, 'api');
    await addWebhookTarget(vault, url, { certificates: ['web', 'api'] });
    const held = hold(1);
    start();
    await until('the slow one is asked', () => held.length === 1);
    const other = await webhookReceiver(t);
    await addWebhookTarget(vault, other.url, { name: 'other' });
    await world.sleeping(2);
    world.advance(look);
    await eventually('the other one is asked', () => other.received.length === 1);
    assert.equal(received.length, 1);
    held[0]?.writeHead(204).end();
    await until('the second certificate', () => received.length === 2);
  });

  test('delays no other target, however many certificates are due on this one', async (t) => {
    const { vault, dataDir, received, url, start, until, hold } = await scene(t);
    await makeCertificate(vault, 'api');
    await addWebhookTarget(vault, url);
    const other = await webhookReceiver(t);
    await addWebhookTarget(vault, other.url, { name: 'other', certificates: ['api'] });
    outside(dataDir, (db) => {
      copyRows(db, 'certificates', 10_000, "'copy' || n");
      copyRows(db, 'deploy_target_certificates', 10_000);
      db.exec(`update deploy_target_certificates set due_at = due_at - ${hour} where deploy_target_id = 1`);
    });
    const held = hold(1);
    start();
    await until('the slow one is asked', () => held.length === 1);
    await eventually('the other one is asked', () => other.received.length === 1);
    assert.equal(received.length, 1);
    held[0]?.destroy();
  });

  test('fails after its time limit', async (t) => {
    const { vault, world, url, start, until, hold, stored } = await scene(t);
    await addWebhookTarget(vault, url);
    const held = hold(1);
    start();
    await until('it is asked', () => held.length === 1);
    world.advance(31 * second);
    const { error } = await stored('the failure', ({ attempts }) => attempts === 1);
    assert.match(error ?? '', /^no response from 127\.0\.0\.1:\d+ within 30 s$/);
    held[0]?.destroy();
  });

  test('is due as before if a stop interrupts it, and is not recorded as failed', async (t) => {
    const { vault, url, stop, start, until, hold, deployments } = await scene(t);
    await addWebhookTarget(vault, url);
    const before = await onTarget(vault, 'hook');
    const held = hold(1);
    const job = start();
    await until('it is asked', () => held.length === 1);
    stop.abort();
    await job;
    assert.deepEqual(await onTarget(vault, 'hook'), before);
    assert.deepEqual(deployments(), []);
    held[0]?.destroy();
  });

  test('leaves nothing if its target is removed meanwhile', async (t) => {
    const { vault, dataDir, log, url, start, until, hold, deployments } = await scene(t);
    await addWebhookTarget(vault, url);
    const held = hold(1);
    start();
    await until('it is asked', () => held.length === 1);
    await removeDeployTarget(vault, localCli, 'hook');
    held[0]?.writeHead(204).end();
    await eventually('the end', () => log.lines.some((line) => line.includes('certificate deployed')));
    assert.deepEqual(deployments(), []);
    assert.deepEqual(eventsOf(dataDir, 'deployment.create'), []);
  });

  test('is followed by one of the newest version after a renewal meanwhile', async (t) => {
    const { vault, received, url, start, until, requested, hold, stored } = await scene(t);
    await addWebhookTarget(vault, url);
    const held = hold(1);
    start();
    await until('it is asked', () => held.length === 1);
    await giveVersion(vault, 'web');
    held[0]?.writeHead(204).end();
    await requested(2);
    assert.deepEqual(versions(received), [1, 2]);
    await stored('it is current', ({ state, version }) => state === 'current' && version === 2);
  });
});

test('a database that fails is logged, and due installations are retried', async (t) => {
  const { vault, log, received, url, start, requested } = await scene(t);
  await addWebhookTarget(vault, url);
  let troubles = 2;
  const db = new Proxy(vault.db, {
    get: (target, name) => {
      if (name === 'reader' && troubles-- > 0) throw new Error('the disk is gone');
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  start({ ...vault, db });
  await requested(1);
  assert(log.lines.some((line) => line.includes('failed to query due deployments')));
  assert.equal(received.length, 1);
});
