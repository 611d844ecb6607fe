/**
 * The files of new API keys' secrets, where two runs of `vault apply` come together: neither takes the other's away.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  draftKeyFiles,
  publishKeyFiles,
  recoverKeyFile,
} from '../../../../src/cli/commands/audit/key-files.ts';
import { createToken } from '../../../../src/crypto/secrets/api-key-token.ts';
import { storeApiKey } from '../../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../../../../src/domain/inputs.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { testVault } from '../../../harness/test-vault.ts';

const input = parseInput(createApiKeyInput, {
  name: 'www',
  scopes: ['certificates:read'],
  certificates: ['*'],
});

/** Two processes at one vault, and a place for the secret of a new key. */
async function prepared(t: TestContext) {
  const one = await testVault(t);
  const other = await testVault(t, { dataDir: one.dataDir });
  const folder = tempDir(t);
  const token = createToken(one.vault.world);
  return { one, other, folder, path: join(folder, 'www.key'), token };
}

test('a concurrent run waits while another stores its API keys, and no secret is lost', async (t) => {
  const { one, other, folder, path, token } = await prepared(t);
  let recovering: Promise<boolean> | undefined;
  await one.vault.db.write(async (writer) => {
    await storeApiKey(one.vault, writer, localCli, input, token);
    draftKeyFiles(new Map([[path, token.raw]]));
    recovering = recoverKeyFile(other.vault, path);
    await Promise.race([recovering, other.world.sleeping(1)]);
    assert.deepEqual(readdirSync(folder), ['.www.key.draft']);
  });
  other.world.advance(1000);
  assert.equal(await recovering, true);
  await publishKeyFiles(one.vault, [path]);
  assert.deepEqual(readdirSync(folder), ['www.key']);
  assert.equal(readFileSync(path, 'utf8'), `${token.raw.expose()}\n`);
});

test('the draft of a key that was never stored is removed, as are all drafts if one cannot be written', async (t) => {
  const { one, folder, path, token } = await prepared(t);
  draftKeyFiles(new Map([[path, token.raw]]));
  assert.equal(await recoverKeyFile(one.vault, path), false);
  assert.deepEqual(readdirSync(folder), []);
  const secrets = new Map([
    [path, token.raw],
    [join(folder, 'missing', 'mail.key'), token.raw],
  ]);
  assert.throws(
    () => draftKeyFiles(secrets),
    /^OperatorError: cannot write .*mail\.key: no such file or directory/,
  );
  assert.equal(existsSync(path), false);
  assert.deepEqual(readdirSync(folder), []);
});
