/** How many validations run at once, wait, and are refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validations } from '../../../../src/domain/acme-server/validation/validations.ts';

/** Validations that run until they are released. */
function held() {
  const validations = new Validations();
  const running = new Set<string>();
  const started: string[] = [];
  const released = Promise.withResolvers<void>();
  const begin = (clientId: number, key: string) =>
    validations.begin(key, clientId, async (signal) => {
      running.add(key);
      started.push(key);
      const aborted = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => aborted.resolve(), { once: true });
      await Promise.race([released.promise, aborted.promise]);
      running.delete(key);
    });
  return { validations, running, started, begin, release: () => released.resolve() };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a client runs at most 16 validations at the same time and does not delay those of another client', async () => {
  const { validations, running, begin, release } = held();
  for (let at = 0; at < 100; at += 1) begin(1, `one ${at}`);
  begin(2, 'two');
  await turn();
  assert.deepEqual([running.size, running.has('two')], [17, true]);
  release();
  await validations.idle();
  assert.equal(running.size, 0);
});

test('at most 64 validations of all clients run at the same time', async () => {
  const { validations, running, begin, release } = held();
  for (let client = 0; client < 20; client += 1)
    for (let at = 0; at < 16; at += 1) begin(client, `${client} ${at}`);
  await turn();
  assert.equal(running.size, 64);
  release();
  await validations.idle();
});

test('a validation beyond 200 of its client or 2000 in total is rejected as rateLimited', async () => {
  const { validations, begin, release } = held();
  for (let at = 0; at < 199; at += 1) begin(0, `0 ${at}`);
  validations.requireRoom(0);
  begin(0, '0 199');
  assert.throws(() => validations.requireRoom(0), {
    ...{ name: 'AcmeProblem', type: 'rateLimited', retryAfterMs: 10_000 },
    message: 'Too many challenges of this client are being validated; retry in a moment.',
  });
  validations.requireRoom(1);
  for (let client = 1; client < 10; client += 1)
    for (let at = 0; at < 200; at += 1) begin(client, `${client} ${at}`);
  assert.throws(
    () => validations.requireRoom(10),
    /^AcmeProblem: Too many challenges of the vault are being validated/,
  );
  release();
  await validations.idle();
  validations.requireRoom(0);
});

test('a validation whose key runs or waits already is not started again until it has ended', async () => {
  const { validations, started, begin, release } = held();
  const keys = Array.from({ length: 20 }, (_, at) => `key ${at}`);
  for (const key of [...keys, ...keys]) begin(1, key);
  release();
  await validations.idle();
  assert.deepEqual(started, keys);
  begin(1, 'key 0');
  await validations.idle();
  assert.deepEqual(started, [...keys, 'key 0']);
});

test('end stops all running validations and starts no further ones', async () => {
  const { validations, running, begin } = held();
  for (let at = 0; at < 30; at += 1) begin(1, `key ${at % 20}`);
  await turn();
  assert.equal(running.size, 16);
  await validations.end();
  assert.equal(running.size, 0);
  begin(1, 'later');
  await turn();
  assert.deepEqual([running.size, validations.isRunning('later')], [0, false]);
});
