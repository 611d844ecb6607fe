/** dehydrated, a shell script; uacme, in C; and acmetool, in Go, which knows no external account binding. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { needs, type Skip } from '../../processes/missing-program.ts';
import { type AcmeProgram, type AcmeService, ran } from './program.ts';

export const dehydrated: AcmeProgram = {
  name: 'dehydrated',
  needs: () => needs('dehydrated'),
  home: (dir, { directoryUrl, caFile, kid, hmacKey }) => {
    const config = join(dir, 'config');
    const lines = [
      `CA=${directoryUrl}`,
      `CURL_OPTS="--cacert ${caFile}"`,
      `BASEDIR=${dir}`,
      // It must exist, also if no challenge is ever written to it.
      `WELLKNOWN=${dir}`,
      // The key of the account has 4096 bits by default, which takes seconds.
      'KEYSIZE=2048',
      `EAB_KID=${kid}`,
      `EAB_HMAC_KEY=${hmacKey}`,
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    const run = (...args: readonly string[]) => ran('dehydrated', ['--config', config, ...args], dir);
    const certificate = (name: string) => join(dir, 'certs', name, 'fullchain.pem');
    return {
      register: () => run('--register', '--accept-terms'),
      issue: (name) => run('--cron', '--domain', name),
      renew: (name) => run('--cron', '--force', '--domain', name),
      revoke: (name) => run('--revoke', join(dir, 'certs', name, 'cert.pem')),
      deactivate: () => run('--deactivate'),
      certificate,
    };
  },
};

/** uacme trusts the roots of the system and takes no others: it sees that of the server in their place. */
const uacmeWithRoots = `mount --bind "$1" /etc/ssl/certs/ca-certificates.crt
shift
exec uacme "$@"`;

const namespace = ['--user', '--map-root-user', '--mount', 'sh', '-ec'];

function needsUacme(): Skip {
  const { status } = spawnSync('unshare', [...namespace, 'mount -t tmpfs none /mnt'], { stdio: 'ignore' });
  return status === 0 ? needs('uacme') : { skip: 'the kernel does not let this user mount file systems' };
}

function uacmeIn(dir: string, { directoryUrl, caFile, kid, hmacKey }: AcmeService) {
  return (...args: readonly string[]) =>
    ran(
      'unshare',
      [
        ...[...namespace, uacmeWithRoots, 'sh', caFile],
        ...['--yes', '--acme-url', directoryUrl, '--confdir', join(dir, 'uacme')],
        ...['--eab', `${kid}:${hmacKey}`, ...args],
      ],
      dir,
    );
}

export const uacme: AcmeProgram = {
  name: 'uacme',
  needs: needsUacme,
  home: (dir, service) => {
    const run = uacmeIn(dir, service);
    const certificate = (name: string) => join(dir, 'uacme', name, 'cert.pem');
    return {
      register: () => run('new'),
      issue: (name) => run('issue', name),
      renew: (name) => run('--force', 'issue', name),
      revoke: (name) => run('revoke', certificate(name)),
      changeKey: () => run('newkey'),
      deactivate: () => run('deactivate'),
      certificate,
    };
  },
};

/**
 * It knows no external account binding: uacme registers its account. It renews only when two thirds of the validity
 * have passed, and its command `revoke` notes the wish and sends nothing.
 */
export const acmetool: AcmeProgram = {
  name: 'acmetool',
  needs: () => {
    const program = needs('acmetool');
    return program.skip === undefined ? needsUacme() : program;
  },
  home: (dir, service) => {
    const state = join(dir, 'state');
    mkdirSync(join(state, 'conf'), { recursive: true });
    const target = {
      request: {
        provider: service.directoryUrl,
        key: { type: 'ecdsa' },
        challenge: { 'webroot-paths': [join(dir, 'webroot')], 'http-self-test': false },
      },
    };
    writeFileSync(join(state, 'conf', 'target'), JSON.stringify(target));
    const run = (...args: readonly string[]) =>
      ran('acmetool', ['--state', state, '--hooks', join(dir, 'hooks'), '--batch', ...args], dir, {
        SSL_CERT_FILE: service.caFile,
      });
    return {
      register: async () => {
        const registered = await uacmeIn(dir, service)('new');
        if (!registered.isDone) return registered;
        return run('import-pem-account', service.directoryUrl, join(dir, 'uacme', 'private', 'key.pem'));
      },
      issue: (name) => run('want', name),
      certificate: (name) => join(state, 'live', name, 'fullchain'),
    };
  },
};
