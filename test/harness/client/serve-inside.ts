/**
 * Runs `vault serve` in the process of the test, for tests of what talks to it: a server costs half a second as a
 * process.
 */
import type { TestContext } from 'node:test';
import manifest from '../../../package.json' with { type: 'json' };
import { realWorld, type World } from '../../../src/base/world.ts';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { runServer } from '../../../src/cli/serving/run-server.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { loopbackSetting } from '../loopback-guard.ts';
import { keptLog } from '../test-vault.ts';

/** Serves the data directory on a free loopback port until `end`, or until the test ends. */
export async function serveInside(
  t: Pick<TestContext, 'after'>,
  dataDir: string,
  options: Readonly<Record<string, string>> = {},
  world: World = realWorld,
): Promise<{ readonly url: string; readonly end: () => Promise<void> }> {
  const environment = { VAULT_ALLOW_OUTBOUND: loopbackSetting };
  const settings = await readSettings(
    { 'data-dir': dataDir, listen: '127.0.0.1:0', ...options },
    environment,
  );
  const { vault, close } = await openVault(settings, world, 'create', keptLog());
  const stop = new AbortController();
  const { version } = manifest;
  const instance = realWorld.randomBytes(8).toString('hex');
  const program = { environment, version };
  const server = await runServer(vault, { settings, program, instance, stop: stop.signal });
  let ending: Promise<void> | undefined;
  const end = () => {
    ending ??= (async () => {
      stop.abort();
      await server.shutDown();
      await close();
    })();
    return ending;
  };
  t.after(end);
  return { url: server.url, end };
}
