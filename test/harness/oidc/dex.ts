/**
 * Dex, an OpenID Connect provider of others, on a loopback port. Its people are those of its mock connectors: Kilgore
 * Trout signs in without a password and has the group authors, or with a password and has no group.
 */
import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { needsFile, type Skip } from '../processes/missing-program.ts';
import { startOnFreePorts } from '../processes/port.ts';
import { clientId, clientSecret } from './scripted-provider.ts';

/** Where `.ci/run` builds it, with the pages that it shows. */
const folder = join(homedir(), '.cache', 'certificate-vault-tests', 'dex');

/** The name of the account of both people: their email address is verified, and they have no username. */
export const dexPerson = 'kilgore@kilgore.trout';

/** How people sign in, by the name that the page of Dex has. */
export const dexWays = { withGroup: 'With a group', withPassword: 'With a password' } as const;

const password = 'breakfast of champions';

const program = join(folder, 'dex');

/** Options for a test that needs Dex. One in PATH does not do: the pages are beside the program. */
export function needsDex(): Skip {
  return needsFile('dex', program);
}

/** Starts Dex for a vault at `url`; `path` follows the host in its issuer. It stops when the test ends. */
export async function startDex(
  t: Pick<TestContext, 'after'>,
  url: string,
  path = '/dex',
): Promise<{ readonly issuer: string; readonly log: () => string }> {
  const issuerAt = (port: number | undefined) => `http://127.0.0.1:${port}${path}`;
  const { ports, log } = await startOnFreePorts(t, 1, ([port], dir) => {
    const configuration = {
      issuer: issuerAt(port),
      storage: { type: 'memory' },
      web: { http: `127.0.0.1:${port}` },
      frontend: { dir: join(folder, 'web') },
      staticClients: [
        {
          id: clientId,
          name: 'Certificate Vault',
          secret: clientSecret,
          redirectURIs: [`${url}/oidc/callback`, '/device/callback'],
        },
      ],
      connectors: [
        { type: 'mockCallback', id: 'group', name: dexWays.withGroup },
        {
          ...{ type: 'mockPassword', id: 'password', name: dexWays.withPassword },
          config: { username: 'kilgore', password },
        },
      ],
    };
    // JSON is YAML.
    const file = join(dir, 'dex.yaml');
    writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
    return {
      program,
      args: ['serve', file],
      isReady: async () => {
        try {
          return (await fetch(`${issuerAt(port)}/.well-known/openid-configuration`)).ok;
        } catch {
          // It does not listen yet.
          return false;
        }
      },
    };
  });
  return { issuer: issuerAt(ports[0]), log };
}

/** Signs in on the pages of Dex, of which the first is open, and consents. */
export async function signInAtDex(page: Page, way: keyof typeof dexWays): Promise<void> {
  await page.getByRole('button', { name: `Log in with ${dexWays[way]}` }).click();
  if (way === 'withPassword') {
    await page.locator('#login').fill('kilgore');
    await page.locator('#password').fill(password);
    await page.getByRole('button', { name: 'Login' }).click();
  }
  await page.getByRole('button', { name: 'Grant Access' }).click();
}
