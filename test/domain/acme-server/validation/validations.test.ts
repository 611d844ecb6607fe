/** How many validations run at once, wait, and are refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validations } from '../../../../src/domain/acme-server/validation/validations.ts';

/** Validations that run until they are released. */
function held() {
  const validations = new Validations();
  const running = new Set<string>();
  const released = Promise.withResolvers<void>();
  const begin = (clientId: number, key: string) =>
    validations.begin(key, clientId, async (signal) => {
      running.add(key);
      const aborted = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => aborted.resolve(), { once: true });
      await Promise.race([released.promise, aborted.promise]);
      running.delete(key);
    });
  return { validations, running, begin, release: () => released.resolve() };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a client has a few at once, and others are not behind it', async () => {
  const { validations, running, begin, release } = held();
  for (let at = 0; at < 100; at += 1) begin(1, `one ${at}`);
  begin(2, 'two');
  await turn();
  assert.deepEqual([running.size, running.has('two')], [17, true]);
  release();
  await validations.idle();
  assert.equal(running.size, 0);
});

test('there are 64 at once of all clients together', async () => {
  const { validations, running, begin, release } = held();
  for (let client = 0; client < 20; client += 1)
    for (let at = 0; at < 16; at += 1) begin(client, `${client} ${at}`);
  await turn();
  assert.equal(running.size, 64);
  release();
  await validations.idle();
});

test('beyond 200 of a client and 2000 of all, the next is refused with a pause', async () => {
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

test('one with the same key runs once, and all end when the process stops', async () => {
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
