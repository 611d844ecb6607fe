/** certbot of PyPI, which asks for renewal information. It registers with the first order. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { acmeRecipes } from '../../../../src/base/acme-recipes.ts';
import { needsFile } from '../../processes/missing-program.ts';
import { type AcmeProgram, linesFor, ran } from './program.ts';

/** Where `.ci/run` installs it: Debian's is older, and does not ask. */
const folder = join(homedir(), '.cache', 'certificate-vault-tests', 'certbot', 'bin');

export const certbot: AcmeProgram = {
  name: 'certbot',
  asksForRenewalInfo: true,
  needs: () => needsFile('certbot', join(folder, 'certbot')),
  home: (dir, service) => {
    // By default its files are where only root may write.
    const settings = [
      'non-interactive = true',
      ...['config', 'work', 'logs'].map((kind) => `${kind}-dir = ${join(dir, kind)}`),
    ];
    mkdirSync(join(dir, '.config', 'letsencrypt'), { recursive: true });
    writeFileSync(join(dir, '.config', 'letsencrypt', 'cli.ini'), `${settings.join('\n')}\n`);
    const shell = (line: string, ...args: readonly string[]) =>
      ran('sh', ['-c', line, 'certbot', ...args], dir, {
        PATH: `${folder}:${process.env.PATH}`,
        REQUESTS_CA_BUNDLE: service.caFile,
      });
    const run = (...args: readonly string[]) =>
      shell('exec certbot "$@"', ...args, '--server', service.directoryUrl);
    const certificate = (name: string) => join(dir, 'config', 'live', name, 'fullchain.pem');
    const renew = (name: string, ...args: readonly string[]) =>
      run('renew', '--cert-name', name, '--no-random-sleep-on-renew', ...args);
    return {
      issue: (name) => shell(linesFor(acmeRecipes.certbot, service, name)),
      renew: (name) => renew(name, '--force-renewal'),
      renewIfDue: (name) => renew(name),
      revoke: (name) => run('revoke', '--cert-path', certificate(name), '--no-delete-after-revoke'),
      deactivate: () => run('unregister'),
      certificate,
    };
  },
};
