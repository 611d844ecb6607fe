/** The installer command as a person pastes it into a shell: nothing in it may become anything but an argument. */

export type InstallerFile = { readonly artifact: string; readonly output: string };

/** How a machine knows that it speaks to the vault: by its own roots, the vault's public key, or a root in a file. */
export type Trust = 'public' | 'pin' | 'ca-file';

export type InstallerChoices = {
  /** The vault's address. */
  readonly server: string;
  readonly trust: Trust;
  /** `sha256//BASE64=`; counts where the trust is in it, as `caFile` does. */
  readonly pin: string;
  /** A path on the machine. */
  readonly caFile: string;
  readonly certificate: string;
  readonly files: readonly InstallerFile[];
  readonly destination: string;
  readonly reloadCommand: string;
  /** Five fields of cron; empty for a minute of each day that the installer chooses. */
  readonly schedule: string;
  readonly owner: string;
  readonly group: string;
  /** Octal, of certificates and chains. */
  readonly mode: string;
  /** `HOST:PORT` */
  readonly verify: string;
  readonly withSudo: boolean;
};

/** The text as one word of a POSIX shell, whatever it holds (POSIX.1-2024, XCU §2.2.2). */
export function shellQuoted(text: string): string {
  if (/^[A-Za-z0-9_./:@,%+-][A-Za-z0-9_./:@,%+=-]*$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The command, one option in each line. Without a key the installer asks for it. Its first request is authenticated like
 * all others: what it brings is run.
 */
export function installerCommand(choices: InstallerChoices, key: string | undefined): string {
  const { server, files, withSudo, trust } = choices;
  const environment = key === undefined ? [] : [`SERVICE_API_KEY=${shellQuoted(key)}`];
  const shell = [
    ...environment,
    // As an argument of sudo every user of the machine would see it.
    ...(withSudo ? ['sudo', ...(key === undefined ? [] : ['--preserve-env=SERVICE_API_KEY'])] : []),
    'sh -s --',
  ];
  const options = [
    ['--server', server],
    ['--pin', trust === 'pin' ? choices.pin : ''],
    ['--ca-file', trust === 'ca-file' ? choices.caFile : ''],
    ['--certificate', choices.certificate],
    ...files.map(({ artifact, output }) => [
      '--file',
      output === '' || output === artifact ? artifact : `${artifact}=${output}`,
    ]),
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
    `${fetching(choices)} ${script} | ${shell.join(' ')}`,
    ...options.map(([option = '', value = '']) => `${option} ${shellQuoted(value)}`),
  ].join(' \\\n  ');
}

/** Where the trust is in one key or root, the script may come from nowhere else either, so no redirect is followed. */
function fetching({ trust, pin, caFile }: InstallerChoices): string {
  // The pinned key is all that is looked at then, as in the installer itself.
  if (trust === 'pin') return `curl -fsS --insecure --pinnedpubkey ${shellQuoted(pin)}`;
  return trust === 'ca-file' ? `curl -fsS --cacert ${shellQuoted(caFile)}` : 'curl -fsSL';
}
