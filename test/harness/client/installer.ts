/**
 * A machine for the client installer: its own home, a PATH with fakes for the programs that would change the real
 * machine (crontab, logger, systemctl), and the real script in a real shell.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readInstaller } from '../../../src/cli/runtime/assets.ts';
import type { Outcome } from '../processes/vault-process.ts';
import { tempDir } from '../temp-dir.ts';

/** The client installer in one file, as the vault serves it. */
export const installer = assembled();

function assembled(): string {
  const folder = fileURLToPath(new URL('../../../build', import.meta.url));
  const path = join(folder, 'install.sh');
  mkdirSync(folder, { recursive: true });
  // Other test processes read it meanwhile.
  writeFileSync(`${path}.${process.pid}`, readInstaller());
  renameSync(`${path}.${process.pid}`, path);
  return path;
}

/**
 * A script of the installer's functions and these lines, which use them; removed when the test ends. Without a file, it
 * would be too long for an argument.
 */
export function withInstallerFunctions(t: { after(end: () => void): unknown }, lines: string): string {
  const functions = readFileSync(installer, 'utf8').replace(/\nmain "\$@"\n$/, '\n');
  const path = join(tempDir(t), 'functions.sh');
  writeFileSync(path, functions + lines);
  return path;
}

/** The script that adds the private CA to trust stores. */
export const trustInstaller = fileURLToPath(new URL('../../../assets/install-ca.sh', import.meta.url));

/** The supported shells: program and first arguments. `sh` is the default shell of this system. */
export const shells = {
  sh: ['sh'],
  dash: ['dash'],
  bash: ['bash', '--posix'],
  busybox: ['busybox', 'sh'],
  ksh: ['ksh93'],
  mksh: ['mksh'],
} as const satisfies Record<string, readonly [string, ...string[]]>;

export type Shell = keyof typeof shells;

/** The programs that send requests; `nc` and `openssl` are the fallbacks if only BusyBox is installed. */
export const tools = {
  curl: 'curl',
  wget: 'wget',
  nc: 'busybox',
  'nc.openbsd': 'nc.openbsd',
  openssl: 'openssl',
} as const;

export type Tool = keyof typeof tools;

export type Machine = {
  readonly home: string;
  /** Programs in this directory come first in PATH. */
  readonly bin: string;
  readonly destination: string;
  /** Runs the script, or another program, until it exits. */
  readonly run: (args: readonly string[], launch?: ClientLaunch) => Promise<Outcome>;
  /** Writes a shell script to `bin`. */
  readonly fake: (name: string, body: string) => void;
  /** Restricts the script to programs in `bin`, without this one. */
  readonly hide: (program: string) => void;
  readonly crontab: () => string;
  readonly syslog: () => string;
  readonly file: (name: string) => string;
  /** The ids of the jobs. */
  readonly jobs: () => string[];
  /** The job's own copy of the script. */
  readonly copy: (job?: string) => string;
  readonly state: (name: string, job?: string) => string;
};

export type ClientLaunch = {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly shell?: Shell;
  /** Runs this instead of the installer. */
  readonly script?: string;
  /** Feeds the script through a pipe, as `curl | sh` does. */
  readonly input?: string;
  readonly signal?: AbortSignal;
  /** A program that starts the shell. */
  readonly through?: readonly string[];
  /** The current directory. */
  readonly cwd?: string;
};

const real = process.env.PATH ?? '';

/** A `sudo` that does not change the user but, like the real one, passes on only the selected environment variables. */
export const fakeSudo = `case $1 in --preserve-env=*) kept=\${1#*=}; shift ;; esac
for name in PATH HOME CERTIFICATE_VAULT_HOME CERTIFICATE_VAULT_FETCH_TRIES \${kept-}; do
  eval "is_set=\\\${$name+yes} value=\\\${$name-}"
  [ -z "$is_set" ] || set -- "$name=$value" "$@"
done
exec env -i "$@"`;

/** A new machine with only one of the download tools and, optionally, BusyBox programs instead of GNU programs. */
export function machine(
  t: Pick<TestContext, 'after'>,
  { shell = 'sh', tool = 'curl', userland }: { shell?: Shell; tool?: Tool; userland?: 'busybox' } = {},
): Machine {
  const home = tempDir(t);
  const bin = join(home, 'bin');
  mkdirSync(bin);
  if (userland === 'busybox') linkBusybox(home);
  const fake = (name: string, body: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  fake(
    'crontab',
    `case $1 in
      -l) cat "${home}/crontab" 2>/dev/null || { echo "no crontab for test" >&2; exit 1; } ;;
      *) cat "$1" >"${home}/crontab" ;;
    esac`,
  );
  fake('logger', `printf '%s\\n' "$*" >>"${home}/syslog"`);
  fake('systemctl', 'exit 1');
  for (const absent of absentWith(tool)) fake(absent, 'exit 127');
  if (tool === 'nc') fake('nc', 'exec busybox nc "$@"');
  if (tool === 'nc.openbsd') fake('nc', 'exec nc.openbsd "$@"');
  const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '');
  const vaultHome = join(home, 'vault');
  const inJobs = () => (existsSync(join(vaultHome, 'jobs')) ? readdirSync(join(vaultHome, 'jobs')) : []);
  const jobs = () => inJobs().filter((name) => !name.startsWith('.'));
  const destination = join(home, 'tls');
  let script = installer;
  const hide = (program: string) => {
    const programs = join(home, 'programs');
    mkdirSync(programs);
    const all = real
      .split(':')
      .filter(existsSync)
      .flatMap((folder) => readdirSync(folder).map((name) => [folder, name] as const));
    for (const [folder, name] of all)
      if (name !== program && !existsSync(join(programs, name)))
        symlinkSync(join(folder, name), join(programs, name));
    script = join(home, 'install.sh');
    const text = readFileSync(installer, 'utf8');
    writeFileSync(script, text.replace(/^ {2}PATH=.*$/m, `  PATH=${bin}:${programs}`));
  };
  return {
    home,
    bin,
    hide,
    destination,
    fake,
    crontab: () => read(join(home, 'crontab')),
    syslog: () => read(join(home, 'syslog')),
    file: (name) => read(join(destination, name)),
    jobs,
    copy: (job = jobs()[0]) => join(vaultHome, 'jobs', job ?? 'none', 'install.sh'),
    state: (name, job = jobs()[0]) => read(join(vaultHome, 'state', job ?? 'none', name)),
    run: (args, launch = {}) => {
      const path = userland === 'busybox' ? `${bin}:${join(home, 'applets')}:${real}` : `${bin}:${real}`;
      const environment = {
        HOME: home,
        PATH: path,
        TMPDIR: home,
        CERTIFICATE_VAULT_HOME: vaultHome,
        CERTIFICATE_VAULT_PAUSE_SECONDS: '0',
        ...launch.environment,
      };
      const [program, ...first] = shells[launch.shell ?? shell];
      const source = launch.input === undefined ? [launch.script ?? script] : ['-s', '--'];
      const [starter = '', ...all] = [...(launch.through ?? []), program, ...first, ...source, ...args];
      return finish(starter, all, { ...launch, environment });
    },
  };
}

/** Runs a program until it exits. */
export async function finish(
  program: string,
  args: readonly string[],
  { environment = {}, input, signal, cwd }: ClientLaunch,
): Promise<Outcome> {
  const child = spawn(program, args, {
    env: environment,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(signal && { signal, killSignal: 'SIGINT' }),
    ...(cwd !== undefined && { cwd }),
  });
  child.on('error', () => {
    // An abort; the exit of the process is what counts.
  });
  child.stdin.on('error', () => {
    // It exited without reading everything.
  });
  child.stdin.end(input ?? '');
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** Fails unless key and certificate in the destination match. Returns the certificate. */
export function assertPair(client: Machine): X509Certificate {
  const certificate = new X509Certificate(client.file('tls.crt'));
  assert(certificate.checkPrivateKey(createPrivateKey(client.file('tls.key'))), 'key and certificate differ');
  return certificate;
}

/** The script's own files in the destination. */
export function leftovers({ destination }: Machine): string[] {
  return readdirSync(destination).filter((name) => name.startsWith('.vault-'));
}

/** The permission bits of a file. */
export function modeOf(path: string): number {
  return statSync(path).mode & 0o7777;
}

function absentWith(tool: Tool): readonly string[] {
  if (tool === 'curl') return ['wget', 'nc'];
  if (tool === 'wget') return ['curl', 'nc'];
  return ['curl', 'wget'];
}

/** Links for all BusyBox applets, as on Alpine; the download tools and OpenSSL stay those of the machine. */
function linkBusybox(home: string): void {
  const folder = join(home, 'applets');
  mkdirSync(folder);
  const busybox = whereIs('busybox');
  const applets = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).split('\n');
  for (const applet of applets) if (/^[a-z]/.test(applet)) symlinkSync(busybox, join(folder, applet));
}

function whereIs(program: string): string {
  const found = real.split(':').find((folder) => existsSync(join(folder, program)));
  return join(found ?? dirname(program), program);
}
