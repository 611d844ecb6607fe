/** Caddy, which orders the certificate of its site as it starts, and renews and reloads it by itself. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { acmeRecipes } from '../../../../src/base/acme-recipes.ts';
import { startOnFreePorts } from '../../processes/port.ts';
import { type AcmeService, linesFor } from './program.ts';

export type Caddy = {
  /** `https://NAME:PORT`, at 127.0.0.1. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly log: () => string;
};

/**
 * Starts Caddy with one site. It stops when the test ends. It renews a certificate as soon as less than `renewalWindow`
 * of its validity is left.
 */
export async function startCaddy(
  t: Pick<TestContext, 'after'>,
  service: AcmeService,
  name: string,
  renewalWindow = 1 / 3,
): Promise<Caddy> {
  const { ports, pid, log } = await startOnFreePorts(t, 2, ([port, plainPort], dir) => {
    const settings = [
      'admin off',
      `http_port ${plainPort}`,
      `https_port ${port}`,
      'default_bind 127.0.0.1',
      `storage file_system ${join(dir, 'storage')}`,
      'renew_interval 1s',
    ];
    const lines = linesFor(acmeRecipes.caddy, service, name);
    const caddyfile = lines.replace('{', () => `{\n\t${settings.join('\n\t')}`);
    const environment = { HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir };
    const config = join(dir, 'caddy.json');
    writeFileSync(config, withWindow(adapted(join(dir, 'Caddyfile'), caddyfile), renewalWindow));
    return {
      program: 'caddy',
      args: ['run', '--config', config],
      environment,
      isReady: (output) => output.includes('serving initial configuration'),
    };
  });
  const [port = 0] = ports;
  return { url: `https://${name}:${port}`, port, pid, log };
}

/** Caddy's JSON for a Caddyfile. */
function adapted(path: string, caddyfile: string): string {
  writeFileSync(path, caddyfile);
  return execFileSync('caddy', ['adapt', '--config', path], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

/** A Caddyfile has no word for this. */
function withWindow(config: string, renewalWindow: number): string {
  const parsed = JSON.parse(config) as { apps: { tls: { automation: { policies: object[] } } } };
  for (const policy of parsed.apps.tls.automation.policies)
    Object.assign(policy, { renewal_window_ratio: renewalWindow });
  return JSON.stringify(parsed);
}
