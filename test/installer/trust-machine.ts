/**
 * A machine for the script that installs trust (assets/install-ca.sh): a server that plays the vault, and the image of
 * a system, with a fake `chroot` whose programs read the anchors of that system as the real ones do.
 */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { type Issued, issue } from '../harness/ca/openssl-chain.ts';
import {
  type ClientLaunch,
  finish,
  type Shell,
  shells,
  trustInstaller,
} from '../harness/client/installer.ts';
import { type Answer, relay } from '../harness/client/relay.ts';
import type { Outcome } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

/** Where a system keeps what it trusts, below its root. */
export type System = {
  readonly anchors: string;
  /** What its command writes. */
  readonly bundle: string;
  /** The program, and how it is run. */
  readonly program: string;
  readonly command: string;
  /** Another file that tells the system apart. */
  readonly mark?: string;
};

const debian = {
  anchors: 'usr/local/share/ca-certificates',
  bundle: 'etc/ssl/certs/ca-certificates.crt',
  program: 'usr/sbin/update-ca-certificates',
  command: 'update-ca-certificates',
};

export const systems = {
  debian,
  alpine: { ...debian, mark: 'etc/alpine-release' },
  redhat: {
    anchors: 'etc/pki/ca-trust/source/anchors',
    bundle: 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
    program: 'usr/bin/update-ca-trust',
    command: 'update-ca-trust extract',
  },
  suse: {
    anchors: 'etc/pki/trust/anchors',
    bundle: 'var/lib/ca-certificates/ca-bundle.pem',
    program: 'usr/sbin/update-ca-certificates',
    command: 'update-ca-certificates',
  },
  arch: {
    anchors: 'etc/ca-certificates/trust-source/anchors',
    bundle: 'etc/ca-certificates/extracted/tls-ca-bundle.pem',
    program: 'usr/bin/update-ca-trust',
    command: 'update-ca-trust',
  },
  freebsd: {
    anchors: 'usr/local/share/certs',
    bundle: 'etc/ssl/certs/0a1b2c3d.0',
    program: 'usr/sbin/certctl',
    command: 'certctl rehash',
    mark: 'usr/share/certs/README',
  },
} as const satisfies Record<string, System>;

export type TrustMachine = {
  readonly home: string;
  /** Programs in this directory come first in PATH. */
  readonly bin: string;
  /** The root of the system's image. */
  readonly image: string;
  /** The address of the vault. */
  readonly url: string;
  /** How many requests it got. */
  readonly requests: () => number;
  /** What it serves as /client/ca.crt. */
  serve: Answer;
  /** What it serves as /client/cas/NAME/ca.crt: nothing for other names. */
  readonly named: Map<string, Answer>;
  /** Writes a shell script to `bin`. */
  readonly fake: (name: string, body: string) => void;
  /** Runs the script with `--server` and `--root`, or with these options alone. */
  readonly run: (args?: readonly string[], launch?: ClientLaunch) => Promise<Outcome>;
  readonly runAlone: (args: readonly string[], launch?: ClientLaunch) => Promise<Outcome>;
  /** The names of the anchors. */
  readonly anchors: () => string[];
  /** What the system trusts after its command ran: the common names. */
  readonly trusted: () => string[];
  /** The commands that ran through chroot. */
  readonly calls: () => string[];
};

const shared = mkdtempSync(join(tmpdir(), 'vault-trust-'));
after(() => rmSync(shared, { recursive: true, force: true }));
const issued = new Map<string, Issued>();

/** A root of this name, issued once per test file; needs `needs('openssl')`. */
export function rootNamed(name: string, options: Parameters<typeof issue>[2] = {}): Issued {
  const known = issued.get(name) ?? issue(shared, name, { role: 'authority', ...options });
  issued.set(name, known);
  return known;
}

/** The SHA-256 fingerprint, with colons. */
export function fingerprintOf({ certificatePem }: Issued): string {
  return new X509Certificate(certificatePem).fingerprint256;
}

/**
 * The name of the entry that the script makes for a root of the vault at this address, or of another private CA of it.
 */
export function entryFor(url: string, root: Issued, ca?: string): string {
  const { hostname, port } = new URL(url);
  const digits = fingerprintOf(root).replaceAll(':', '').toLowerCase().slice(0, 16);
  return `certificate-vault-${hostname}-${port}${ca === undefined ? '' : `_${ca}`}-${digits}`;
}

/** The response with these certificates. */
export function bundleOf(...roots: readonly Issued[]): Answer {
  return { status: 200, body: roots.map(({ certificatePem }) => certificatePem).join('') };
}

/** The common names in a PEM file; none if there is no such file. */
export function namesIn(path: string): string[] {
  const blocks = existsSync(path)
    ? readFileSync(path, 'utf8').match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g)
    : [];
  return (blocks ?? []).map((pem) => /^CN=(.*)$/m.exec(new X509Certificate(pem).subject)?.[1] ?? '').sort();
}

/** A machine that runs this system, whose vault serves `root-one`. */
export async function trustMachine(
  t: Pick<TestContext, 'after'>,
  {
    system = systems.debian,
    shell = 'sh',
    userland,
    tls,
  }: {
    system?: System;
    shell?: Shell;
    userland?: 'busybox';
    tls?: { readonly cert: string; readonly key: string };
  } = {},
): Promise<TrustMachine> {
  const home = tempDir(t);
  const [bin, image] = [join(home, 'bin'), join(home, 'image')];
  for (const folder of [bin, join(image, system.anchors)]) mkdirSync(folder, { recursive: true });
  const place = (path: string, mode: number) => {
    mkdirSync(dirname(join(image, path)), { recursive: true });
    writeFileSync(join(image, path), '', { mode });
  };
  place(system.program, 0o755);
  if ('mark' in system && system.mark !== undefined) place(system.mark, 0o644);
  place(system.bundle, 0o644);
  const fake = (name: string, body: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  fake('logger', `printf '%s\\n' "$*" >>"${home}/syslog"`);
  fake('chroot', rebuilding(home, system));
  if (userland === 'busybox') fakeBusybox(fake);
  const server = await relay(t, () => 'http://127.0.0.1:9', tls);
  const self: { serve: Answer } = { serve: bundleOf(rootNamed('root-one')) };
  const named = new Map<string, Answer>();
  server.answer = (path) => {
    const name = /^\/client\/cas\/([^/]+)\/ca\.crt$/.exec(path)?.[1];
    return name === undefined ? self.serve : (named.get(name) ?? { status: 404, body: '{}' });
  };
  const runAlone = (args: readonly string[], launch: ClientLaunch = {}) => {
    const environment = {
      HOME: home,
      TMPDIR: home,
      PATH: `${bin}:${process.env.PATH ?? ''}`,
      ...launch.environment,
    };
    const [program, ...first] = shells[launch.shell ?? shell];
    const source = launch.input === undefined ? [launch.script ?? trustInstaller] : ['-s', '--'];
    const [starter = '', ...all] = [...(launch.through ?? []), program, ...first, ...source, ...args];
    return finish(starter, all, { ...launch, environment });
  };
  const files = (path: string) => (existsSync(path) ? readdirSync(path).sort() : []);
  return Object.assign(self, {
    named,
    home,
    bin,
    image,
    url: server.url,
    requests: () => server.seen.length,
    fake,
    runAlone,
    run: (args: readonly string[] = [], launch: ClientLaunch = {}) =>
      runAlone(['--server', server.url, '--root', image, ...args], launch),
    anchors: () => files(join(image, system.anchors)),
    trusted: () => namesIn(join(image, system.bundle)),
    calls: () => {
      const path = join(home, 'calls');
      return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
    },
  });
}

/** The body of a `chroot` that notes its command and, like it, lists the anchors in the bundle. */
export function rebuilding(home: string, { anchors, bundle }: System): string {
  return `root=$1
shift
echo "$*" >>"${home}/calls"
cat "$root/${anchors}"/* >"$root/${bundle}" 2>/dev/null
exit 0`;
}

/** BusyBox's programs instead of those of the machine, as on Alpine. */
function fakeBusybox(fake: TrustMachine['fake']): void {
  const applets = execFileSync('busybox', ['--list'], { encoding: 'utf8' }).trimEnd().split('\n');
  for (const name of [
    'awk',
    'sed',
    'grep',
    'tr',
    'cut',
    'find',
    'fold',
    'sha256sum',
    'cksum',
    'cmp',
    'od',
    'head',
    'tail',
    'ls',
  ])
    if (applets.includes(name)) fake(name, `exec busybox ${name} "$@"`);
}
