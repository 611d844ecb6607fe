/** How processes come to the keys of a vault, here where several of them make it at once. */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKeyring, failWithoutPrompt, Unlocking } from '../../../src/cli/runtime/master-keys.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

test('concurrent creations of a sealed key file return the same key', async (t) => {
  const dir = tempDir(t);
  const masterKeyPassphraseFile = join(dir, 'passphrase');
  writeFileSync(masterKeyPassphraseFile, 'several words in a row\n', { mode: 0o600 });
  const masterKeyFile = join(dir, 'keys', 'master.key');
  const made = () => {
    const unlocking = new Unlocking({ masterKeyFile, masterKeyPassphraseFile }, failWithoutPrompt);
    return createKeyring({ masterKeyFile }, unlocking, new TestWorld());
  };
  const [one, two] = await Promise.all([made(), made()]);
  assert.equal(one.current.name, two.current.name);
  assert.deepEqual(readdirSync(join(dir, 'keys')), ['master.key']);
});
