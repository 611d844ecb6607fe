/** Builds the installer command for a shell. Every value is quoted, so that it can only be an argument. */

export type InstallerFile = { readonly artifact: string; readonly output: string };

/** How a machine authenticates the vault: by its trusted roots, the vault's public key, or a root in a file. */
export type Trust = 'public' | 'pin' | 'ca-file';

export type InstallerChoices = {
  /** The vault's address. */
  readonly server: string;
  readonly trust: Trust;
  /** `sha256//BASE64=`; used only if `trust` is `pin`. */
  readonly pin: string;
  /** A path on the machine; used only if `trust` is `ca-file`. */
  readonly caFile: string;
  readonly certificate: string;
  readonly files: readonly InstallerFile[];
  /** Whether the machine generates the private key and keeps it. */
  readonly withLocalKey: boolean;
  /** A path on the machine; used only if `files` has a keystore. */
  readonly keystorePasswordFile: string;
  readonly destination: string;
  readonly reloadCommand: string;
  /** Five cron fields; empty for a daily time that the installer picks. */
  readonly schedule: string;
  readonly owner: string;
  readonly group: string;
  /** Octal mode of certificates and chains. */
  readonly mode: string;
  /** `HOST:PORT` */
  readonly verify: string;
  readonly withSudo: boolean;
};

/** Whether any of the files has a private key. */
export function hasPrivateKey(files: readonly InstallerFile[]): boolean {
  return files.some(({ artifact }) => ['private.key', 'combined.pem', 'keystore.p12'].includes(artifact));
}

/** Whether a password is needed. */
export function hasKeystore(files: readonly InstallerFile[]): boolean {
  return files.some(({ artifact }) => artifact === 'keystore.p12');
}

/** Quotes any text as one word for a POSIX shell (POSIX.1-2024, XCU §2.2.2). */
export function shellQuoted(text: string): string {
  if (/^[A-Za-z0-9_./:@,%+-][A-Za-z0-9_./:@,%+=-]*$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Where a machine keeps an enrollment token until it has a key of its own. */
export const tokenFile = '/root/vault-enrollment-token';

/** The command that stores an enrollment token. The shell writes it, so that no other user sees it as an argument. */
export function storeTokenCommand(token: string): string {
  return `printf '%s\\n' ${shellQuoted(token)} | sudo sh -c 'umask 077; cat > ${tokenFile}'`;
}

/**
 * The command, one option per line. Without a key the installer asks for it, or exchanges the token in the file
 * `enrollment` for one. The first request is authenticated like
 * all others, because it downloads a script that runs as root.
 */
export function installerCommand(
  choices: InstallerChoices,
  key: string | undefined,
  enrollment?: string,
): string {
  const { server, files, withSudo, trust } = choices;
  const environment = key === undefined ? [] : [`SERVICE_API_KEY=${shellQuoted(key)}`];
  const shell = [
    ...environment,
    // In the environment, because every user of the machine can see the arguments of sudo.
    ...(withSudo ? ['sudo', ...(key === undefined ? [] : ['--preserve-env=SERVICE_API_KEY'])] : []),
    'sh -s --',
  ];
  const options = [
    ['--server', server],
    ['--enroll', enrollment ?? ''],
    ['--pin', trust === 'pin' ? choices.pin : ''],
    ['--ca-file', trust === 'ca-file' ? choices.caFile : ''],
    ['--certificate', choices.certificate],
    ...files.map(({ artifact, output }) => [
      '--file',
      output === '' || output === artifact ? artifact : `${artifact}=${output}`,
    ]),
    ['--keystore-password-file', hasKeystore(files) ? choices.keystorePasswordFile : ''],
    ['--destination', choices.destination],
    ['--owner', choices.owner],
    ['--group', choices.group],
    ['--mode', choices.mode],
    ['--reload-command', choices.reloadCommand],
    ['--schedule', choices.schedule],
    ['--verify', choices.verify],
  ].filter(([, value]) => value !== '');
  const script = shellQuoted(`${server}/client/install.sh`);
  return [
    `${curlCommand(choices)} ${script} | ${shell.join(' ')}`,
    ...options.map(([option = '', value = '']) => `${option} ${shellQuoted(value)}`),
    ...(choices.withLocalKey ? ['--local-key'] : []),
  ].join(' \\\n  ');
}

/**
 * The curl command. With a pin or a root file it follows no redirects, so that the script comes only from the vault.
 */
function curlCommand({ trust, pin, caFile }: InstallerChoices): string {
  // curl then checks only the pinned key, as the installer does.
  if (trust === 'pin') return `curl -fsS --insecure --pinnedpubkey ${shellQuoted(pin)}`;
  return trust === 'ca-file' ? `curl -fsS --cacert ${shellQuoted(caFile)}` : 'curl -fsSL';
}
