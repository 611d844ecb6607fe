/** Runs `vault serve` in the process of the test, for tests of what talks to it: a server costs half a second as a process. */
import type { TestContext } from 'node:test';
import manifest from '../../../package.json' with { type: 'json' };
import { realWorld } from '../../../src/base/world.ts';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { ownJobs, sharedJobs, startServing } from '../../../src/cli/serving/serving.ts';
import { recordedSettings } from '../../../src/cli/settings/recorded-settings.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import type { Terminal } from '../../../src/cli/terminal/terminal.ts';
import { recordServedSettings } from '../../../src/domain/instance/served-settings.ts';
import { beginServing, endServing } from '../../../src/domain/instance/served-vault.ts';
import { loopbackSetting } from '../loopback-guard.ts';
import { keptLog } from '../test-vault.ts';

/** Serves the data directory on a free loopback port until `end`, or until the test ends. */
export async function serveInside(
  t: Pick<TestContext, 'after'>,
  dataDir: string,
  options: { readonly 'public-url'?: string } = {},
): Promise<{ readonly url: string; readonly end: () => Promise<void> }> {
  const environment = { VAULT_ALLOW_OUTBOUND: loopbackSetting };
  const settings = await readSettings(
    { 'data-dir': dataDir, listen: '127.0.0.1:0', ...options },
    environment,
  );
  const { vault, close } = await openVault(settings, realWorld, 'create', keptLog());
  await beginServing(vault);
  const { version } = manifest;
  const server = await startServing(vault, settings, version);
  const instance = realWorld.randomBytes(8).toString('hex');
  const recorded = recordedSettings(settings, { url: server.url, instance, keyring: vault.keyring });
  await recordServedSettings(vault, recorded);
  const stop = new AbortController();
  const terminal = { environment, version } as unknown as Terminal;
  const jobs = [
    ...ownJobs(vault, stop.signal),
    ...sharedJobs(vault, settings, terminal, recorded, stop.signal),
  ];
  let ending: Promise<void> | undefined;
  const end = () => {
    ending ??= (async () => {
      stop.abort();
      await server.stop(0);
      await Promise.all(jobs);
      await endServing(vault, instance);
      await close();
    })();
    return ending;
  };
  t.after(end);
  return { url: server.url, end };
}
