/** A bug that nothing catches: one sentence and exit code 1, without the source and the stack that Node would print. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fromSource, serve } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** Makes each process of the vault throw, or reject without anybody listening, at a signal. */
const throwing = `data:text/javascript,${encodeURIComponent(
  "process.on('SIGUSR2', () => { throw new Error('boom') });" +
    "process.on('SIGURG', () => { Promise.reject(new Error('boom')) });",
)}`;
const [node, main] = fromSource;
const program = [node, '--import', throwing, main];
const sentence =
  /^vault: internal error: boom\n {2}This is a bug\. Run the command again with CERTVAULT_DEBUG=1 and report the output\.\n/m;

for (const signal of ['SIGUSR2', 'SIGURG'] as const) {
  test(`a server with an uncaught error (${signal}) exits with code 1 and a message without a stack`, async (t) => {
    const server = await serve(t, join(tempDir(t), 'data'), { program });
    assert.deepEqual(await server.end(signal), { code: 1, signal: null });
    assert.match(server.log(), sentence);
    assert.doesNotMatch(server.log(), /\n\s+at |Node\.js v|"stack"/);
  });
}

test('a server with an uncaught error prints its stack with CERTVAULT_DEBUG', async (t) => {
  const server = await serve(t, join(tempDir(t), 'data'), { program, environment: { CERTVAULT_DEBUG: '1' } });
  assert.equal((await server.end('SIGUSR2')).code, 1);
  assert.match(server.log(), /Error: boom\n {4}at /);
});
