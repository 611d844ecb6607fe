/** The installed Pebble and its features, its configuration and its HTTPS certificate. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { encodePem } from '../../../src/crypto/pem.ts';
import { findProgram } from '../processes/missing-program.ts';
import { identifier, makeChain } from './private-chain.ts';

export type Feature = 'ari' | 'profiles' | 'dns-persist-01' | 'dns-account-01';

export type PebbleProgram = {
  readonly path: string;
  /** `2.10.1`, or `unknown`. */
  readonly version: string;
  readonly features: ReadonlySet<Feature>;
};

export type PebbleProfile = { readonly description?: string; readonly validityPeriod?: number };

export type PebbleConfiguration = {
  /** Key id → MAC key, base64url. If there are any, accounts need an external account binding. */
  readonly eab?: Readonly<Record<string, string>>;
  /** Seconds: the time from notBefore to notAfter, both included. */
  readonly certificateValidityPeriod?: number;
  readonly profiles?: Readonly<Record<string, PebbleProfile>>;
  /** The ports for http-01 and tls-alpn-01; by default a port where nothing listens. */
  readonly httpPort?: number;
  readonly tlsPort?: number;
  /** Seconds in the Retry-After of orders and authorizations (in either format, at random); by default no header. */
  readonly retryAfter?: number;
};

/** The target folders of `go install`. */
export const goFolders: readonly string[] = [
  ...(process.env.GOBIN ? [process.env.GOBIN] : []),
  ...(process.env.GOPATH ? process.env.GOPATH.split(delimiter).map((path) => join(path, 'bin')) : []),
  join(homedir(), 'go', 'bin'),
];

/** The discard port: no test listens there, and a connection is refused at once. */
export const deadPort = 9;

/** Strings in the program if it supports the feature, because Pebble does not report features or its version. */
const signs: ReadonlyMap<Feature, string> = new Map([
  ['ari', '/set-renewal-info/'],
  ['profiles', 'invalidProfile'],
  ['dns-persist-01', 'dns-persist-01'],
  ['dns-account-01', 'dns-account-01'],
]);

let found: PebbleProgram | undefined;

/** The installed Pebble: from the user's Go folders, or from PATH. */
export function installedPebble(): PebbleProgram | undefined {
  if (found) return found;
  const path = findProgram('pebble', goFolders);
  if (path === undefined) return undefined;
  const content = readFileSync(path);
  const features = [...signs].filter(([, sign]) => content.includes(sign)).map(([feature]) => feature);
  found = { path, version: versionOf(path, content), features: new Set(features) };
  return found;
}

/** Writes `ca.pem`, `server.pem`, `server.key` and returns the first: the root of the certificate for 127.0.0.1. */
export async function writeHttpsFiles(dir: string): Promise<{ caFile: string; caPem: string }> {
  const { root, intermediate, leaf } = await makeChain({ leaf: { identifiers: [identifier('127.0.0.1')] } });
  const [caPem = '', ...chain] = [root, leaf, intermediate].map(({ certificate }) =>
    encodePem('CERTIFICATE', certificate),
  );
  const key = createPrivateKey({ key: leaf.privateKey.expose(), format: 'der', type: 'pkcs8' });
  const caFile = join(dir, 'ca.pem');
  writeFileSync(caFile, caPem);
  writeFileSync(join(dir, 'server.pem'), chain.join(''));
  writeFileSync(join(dir, 'server.key'), key.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return { caFile, caPem };
}

/** Writes `pebble.json` and returns its path. */
export function writeConfiguration(
  dir: string,
  { path, features }: PebbleProgram,
  [port, managementPort]: readonly number[],
  options: PebbleConfiguration,
): string {
  const { eab, certificateValidityPeriod: validityPeriod, profiles, retryAfter = 0 } = options;
  if (profiles && !features.has('profiles')) throw new Error(`${path} does not support profiles`);
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: join(dir, 'server.pem'),
    privateKey: join(dir, 'server.key'),
    httpPort: options.httpPort ?? deadPort,
    tlsPort: options.tlsPort ?? deadPort,
    externalAccountBindingRequired: eab !== undefined,
    externalAccountMACKeys: eab ?? {},
    // Old versions have one validity; new ones ignore it and use that of the profile.
    ...(validityPeriod !== undefined && { certificateValidityPeriod: validityPeriod }),
    profiles: validities(profiles ?? { default: { description: 'The only one' } }, validityPeriod),
    retryAfter: { authz: retryAfter, order: retryAfter },
  };
  const file = join(dir, 'pebble.json');
  writeFileSync(file, JSON.stringify({ pebble }));
  return file;
}

function validities(profiles: Readonly<Record<string, PebbleProfile>>, validityPeriod: number | undefined) {
  const entries = Object.entries(profiles).map(
    ([name, profile]) => [name, { ...(validityPeriod && { validityPeriod }), ...profile }] as const,
  );
  return Object.fromEntries(entries);
}

/** The version: printed by releases, next to the module name in builds of `go install`, or from the Debian package. */
function versionOf(path: string, content: Buffer): string {
  const module = 'mod\tgithub.com/letsencrypt/pebble/v2\t';
  const at = content.indexOf(module);
  const built = at === -1 ? '' : content.toString('latin1', at + module.length, at + module.length + 40);
  const says = (program: string, ...args: readonly string[]) =>
    execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const answers = [() => says(path, '-version'), () => built, () => says('dpkg-query', '--show', 'pebble')];
  for (const answer of answers) {
    try {
      const version = /\d+\.\d+\.\d+/.exec(answer())?.[0];
      if (version !== undefined) return version;
    } catch {
      // The option is not supported, or this is not Debian; try the next way.
    }
  }
  return 'unknown';
}
