/** Replacements at a server: how long the command line waits for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replacementsThere } from '../../../../src/cli/commands/replace/replacement-places.ts';
import { type RemoteVault, slowRequest } from '../../../../src/cli/remote/remote-vault.ts';

test('a preview and a new replacement, which read all certificates, may take minutes at a server', async () => {
  const waits: unknown[] = [];
  const send = async (...[, path, , timeoutMs]: Parameters<RemoteVault['send']>) =>
    void waits.push([path, timeoutMs]);
  const { preview, create } = replacementsThere({ send } as unknown as RemoteVault);
  await preview({ issuer: 'local-ca' });
  await create({ issuer: 'local-ca' });
  assert.deepEqual(waits, [
    ['/replacements/preview', slowRequest],
    ['/replacements', slowRequest],
  ]);
});
