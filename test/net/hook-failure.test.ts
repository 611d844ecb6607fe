/** How a failed hook is described: with the end of its output, and without the secrets in it. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { hookFailure } from '../../src/net/hook-failure.ts';
import { runHook } from '../../src/net/hook-process.ts';
import { hookScript } from '../harness/dns/hook-script.ts';
import { tempDir } from '../harness/temp-dir.ts';

/** The text after the exit code of a hook that writes `output`, an expression in which `secret` is the secret. */
async function saidBy(t: TestContext, output: string, secret: string): Promise<string> {
  const body = `const secret = process.env.TOKEN; process.stderr.write(${output}); process.exitCode = 3;`;
  const [program, script] = hookScript(tempDir(t), body);
  const run = { program, args: [script], environment: { TOKEN: secret }, timeoutMs: 60_000 };
  const end = await runHook(realWorld, run, new AbortController().signal);
  return (hookFailure(run, end, [secret]) ?? '').replace(/^.* failed with exit code 3/, '');
}

const key = `BEGIN${'S3CRET-long-'.repeat(416)}END`;

test('a secret that ends with a line break is hidden', async (t) => {
  assert.equal(await saidBy(t, '"bad: " + secret', 'S3CRET-block-0123456789\n'), ': bad: [secret]');
});

test('a secret that is longer than the kept output is hidden', async (t) => {
  assert.equal(await saidBy(t, '"bad: " + secret + " of the zone example.com"', key), ': …[secret]ample.com');
  assert.equal(await saidBy(t, '"bad: " + secret + " " + "x".repeat(600)', key), `: …${'x'.repeat(500)}`);
});

test('no part of a secret is shown, wherever the kept output begins', async (t) => {
  const secret = Array.from({ length: 24 }, (_, at) => String.fromCharCode(0x430 + at)).join('');
  for (const shown of [0, 1, 8, 15, 16, 20, 23, 24]) {
    const rest = `"\\u0416".repeat(${(4096 - 2 * shown) / 2})`;
    const said = await saidBy(t, `secret + "\\n" + ${rest}`, secret);
    assert(![...secret].some((character) => said.includes(character)), said);
  }
  const repeated = await saidBy(t, '(secret + "\\n").repeat(1000)', 'correct horse battery');
  assert.equal(repeated, ': …[secret]');
});

test('characters that a terminal would act on become spaces', async (t) => {
  const said = await saidBy(t, '"a\\u001b]52;c;ZXZpbA==\\u0007\\u009b2J\\u202eb\\r\\nc"', 'other');
  assert.equal(said, ': a ]52;c;ZXZpbA== 2J b c');
});
