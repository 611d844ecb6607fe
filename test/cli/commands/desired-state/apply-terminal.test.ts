/** `vault apply` on a terminal: it shows what it asks about, and changes nothing without a yes. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { realWorld } from '../../../../src/base/world.ts';
import { run } from '../../../../src/cli/commands/run.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

/** A user at a terminal who answers the question. */
function terminalWith(answer: string) {
  const stream = () => Object.assign(new PassThrough(), { isTTY: true });
  const [stdin, stdout, stderr] = [stream(), stream(), stream()];
  stdin.end(answer);
  const kept = (output: PassThrough) => {
    const chunks: string[] = [];
    output.on('data', (chunk) => chunks.push(String(chunk)));
    return () => stripVTControlCharacters(chunks.join(''));
  };
  const terminal = {
    ...{ world: realWorld, environment: {}, version: '0', executable: 'vault' },
    ...{ stdin: stdin as never, stdout: stdout as never, stderr: stderr as never },
  };
  return { terminal, stdout: kept(stdout), stderr: kept(stderr) };
}

function prepared(t: TestContext) {
  const dir = tempDir(t);
  const path = join(dir, 'desired.yaml');
  writeFileSync(path, 'version: 1\ncertificates: {web: {domains: [a.test]}}\n');
  return ['apply', '-f', path, '--data-dir', join(dir, 'data')];
}

const shown = /\+ certificate web\n {4}domains: \[a\.test\]\n[\s\S]*1 to create, 0 to change, 0 to remove\n/;

test('apply prints the changes and makes them only after confirmation', async (t) => {
  const words = prepared(t);
  const no = terminalWith('n\n');
  assert.equal(await run(words, no.terminal), 1);
  assert.match(no.stdout(), shown);
  assert.match(no.stderr(), /Apply these changes\? \[y\/N\] vault: not confirmed; nothing was changed\n/);
  const yes = terminalWith('y\n');
  assert.equal(await run(words, yes.terminal), 0);
  assert.match(yes.stdout(), shown, 'it was not there yet');
  assert.match(yes.stderr(), /Applied \S+\.\n$/);
});

test('with --json, apply prints the changes to confirm on stderr', async (t) => {
  const words = [...prepared(t), '--json'];
  const { terminal, stdout, stderr } = terminalWith('y\n');
  assert.equal(await run(words, terminal), 0);
  const said = stderr();
  assert.match(said.slice(0, said.indexOf('Apply these changes?')), shown);
  assert.equal((JSON.parse(stdout()) as { applied: boolean }).applied, true);
});
