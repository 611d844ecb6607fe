/** `--wait`: the steps of a renewal as they happen, its end as the command's, and ^C in between. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { test } from 'node:test';
import { problem } from '../../../harness/ca/scripted-acme.ts';
import { loopbackSetting } from '../../../harness/loopback-guard.ts';
import {
  type CommandLine,
  commandLineWithCa,
  commandWords,
} from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { fromExecutable, serve } from '../../../harness/processes/vault-process.ts';

const create = commandWords('certificate create --name web --domain web.test --issuer ca');
const renew = commandWords('certificate renew --name web --wait');
const steps =
  'contacting ca: directory and account\ncreating an order at ca\nvalidating web.test with http-01\n' +
  'waiting for ca to complete the validation\nfinalizing the order\n';
const stillOpen =
  'vault: stopped waiting; the renewal of web is not finished\n  "vault serve" continues it. Check the result with "vault renewals list".\n';

/** Waits until the stream has said `text`; what it has said by then. It is read on, or its writer would be ended. */
function said(stream: Readable, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let seen = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    seen += chunk;
    if (seen.includes(text)) resolve(seen);
  });
  stream.once('end', () => reject(new Error(`it did not say "${text}": ${seen}`)));
  return promise;
}

/** The CA is here. */
const allowing = { ...process.env, VAULT_ALLOW_OUTBOUND: loopbackSetting };

/** `vault` with these words, given ^C when it has said `text` on stderr; what it says after that, and its exit code. */
async function interrupted({ data }: CommandLine, words: readonly string[], text: string) {
  const [program, ...first] = fromExecutable;
  const child = spawn(program, [...first, ...words, '--data-dir', data], {
    env: allowing,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stderr = child.stderr;
  stderr.setEncoding('utf8');
  let all = '';
  const ended = once(child, 'close');
  stderr.on('data', (chunk: string) => {
    const had = all.includes(text);
    all += chunk;
    if (!had && all.includes(text)) child.kill('SIGINT');
  });
  const [code] = await ended;
  return { code, stderr: all };
}

test('without a server, --wait reports it and runs the renewal in the same process', async (t) => {
  const { done } = await commandLineWithCa(t);
  const { stdout, stderr } = await done(...create, '--wait');
  assert.match(stdout, /^web: version 1, valid until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$/);
  assert.equal(
    stderr.replace(/(waiting for ca to issue the certificate\n)?downloading the certificate\n$/, ''),
    `queued\nno "vault serve" is running; renewing in this process\n${steps}`,
  );
});

test('with a running server, --wait leaves the renewal to the server and prints its result', async (t) => {
  const { data, done } = await commandLineWithCa(t);
  const server = await serve(t, data, { args: ['--log-level', 'debug'] });
  const { stdout, stderr } = await done(...create, '--wait');
  assert.match(stdout, /^web: version 1, valid until /);
  assert.doesNotMatch(stderr, /renewing in this process/);
  await server.end();
  assert.match(server.log(), /"msg":"certificate issued"/);
});

test('renew --wait follows a running renewal and does not request another', async (t) => {
  const line = await commandLineWithCa(t);
  const { ca, data, done, run, json } = line;
  const held = Promise.withResolvers<void>();
  t.after(() => held.resolve());
  ca.override('newOrder', async (_, usual) => ({ ...(await usual()), until: held.promise }));
  const server = await serve(t, data);
  await done(...create);
  const [program, ...first] = fromExecutable;
  const child = spawn(program, [...first, ...renew, '--data-dir', data], {
    env: allowing,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stdout = said(child.stdout, 'version 1');
  await said(child.stderr, 'creating an order at ca\n');
  assert.equal(
    (await run('certificate', 'renew', '--name', 'web')).stderr,
    'A renewal of web is already running.\n',
  );
  held.resolve();
  assert.match(await stdout, /^web: version 1, valid until /);
  assert.equal((await json<unknown[]>('renewals', 'list')).length, 1);
  await server.end();
});

test("a failure exits with 1 and the CA's message, without control characters", async (t) => {
  const { ca, run } = await commandLineWithCa(t);
  ca.override('newOrder', problem('rejectedIdentifier', 'we do not like \u001b]0;pwned\u0007web.test'));
  const { code, stdout, stderr } = await run(...create, '--wait');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /\nvault: we do not like .*web\.test\n$/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not come.
  assert.doesNotMatch(stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
});

test('waiting for a paused CA prints the end and the reason of the pause, and ^C stops waiting', async (t) => {
  const line = await commandLineWithCa(t);
  line.ca.override(
    'newOrder',
    problem('rateLimited', 'too many certificates', { status: 503, headers: { 'Retry-After': '3000' } }),
  );
  assert.equal((await line.run(...create, '--wait')).code, 1);
  const { code, stderr } = await interrupted(line, renew, 'too many certificates\n');
  assert.equal(code, 1);
  assert.match(stderr, /^waiting until \S+Z, as requested by the CA: too many certificates\nvault: /);
  assert.ok(stderr.endsWith(stillOpen), stderr);
  const [issuer] = await line.json<{ paused_until: string | null }[]>('issuer', 'list');
  assert.match(issuer?.paused_until ?? '', /Z$/);
});

test('after ^C during an order, the next command continues the same order', async (t) => {
  const line = await commandLineWithCa(t, { processing: 1000 });
  const { code, stderr } = await interrupted(
    line,
    [...create, '--wait'],
    'waiting for ca to issue the certificate\n',
  );
  assert.equal(code, 1);
  assert.ok(stderr.endsWith(stillOpen), stderr);
  for (const order of line.ca.state.orders.values()) order.processing = 0;
  const { stdout } = await line.done(...renew);
  assert.match(stdout, /^web: version 1, valid until /);
  assert.equal(line.ca.state.orders.size, 1);
});

test(
  'on a terminal, the steps overwrite one line, which is cleared at the end',
  needs('script'),
  async (t) => {
    const { data } = await commandLineWithCa(t);
    const words = [...fromExecutable, ...create, '--wait', '--data-dir', data].join(' ');
    const child = spawn('script', ['--quiet', '--command', `stty cols 100; exec ${words}`, '/dev/null'], {
      env: { ...allowing, SHELL: '/bin/sh' },
    });
    let seen = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      seen += chunk;
    });
    await once(child, 'close');
    const clear = '\r\u001b[K';
    assert.ok(seen.startsWith(`${clear}queued${clear}`), JSON.stringify(seen));
    assert.match(
      seen.slice(seen.lastIndexOf(clear) + clear.length),
      /^web: version 1, valid until \S+Z\r\n$|^$/,
    );
    assert.equal(seen.split('\n').length, 2, JSON.stringify(seen));
  },
);

test('without a server, --wait resumes the renewal of a killed command', async (t) => {
  const { ca, data, run } = await commandLineWithCa(t);
  const held = Promise.withResolvers<void>();
  t.after(() => held.resolve());
  ca.override('newOrder', async (_, answer) => ({ ...(await answer()), until: held.promise }));
  const [program, ...first] = fromExecutable;
  const killed = spawn(program, [...first, ...create, '--wait', '--data-dir', data], {
    env: allowing,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(killed, 'close');
  await said(killed.stderr, 'creating an order at ca\n');
  killed.kill('SIGKILL');
  await ended;
  held.resolve();
  const { code, stdout, stderr } = await run(...renew);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^web: version 1, valid until /);
  assert.match(stderr, /no "vault serve" is running; renewing in this process\n/);
});
