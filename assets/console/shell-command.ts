/** The installer command as a person pastes it into a shell: nothing in it may become anything but an argument. */

export type InstallerFile = { readonly artifact: string; readonly output: string };

export type InstallerChoices = {
  /** The vault's address. */
  readonly server: string;
  readonly certificate: string;
  readonly files: readonly InstallerFile[];
  readonly destination: string;
  readonly reloadCommand: string;
  /** Five fields of cron; empty for a minute of each day that the installer chooses. */
  readonly schedule: string;
  readonly owner: string;
  readonly group: string;
  /** `HOST:PORT` */
  readonly verify: string;
  readonly withSudo: boolean;
};

/** The text as one word of a POSIX shell, whatever it holds (POSIX.1-2024, XCU §2.2.2). */
export function shellQuoted(text: string): string {
  if (/^[A-Za-z0-9_./:@,%+-][A-Za-z0-9_./:@,%+=-]*$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command, one option in each line. Without a key the installer asks for it. */
export function installerCommand(choices: InstallerChoices, key: string | undefined): string {
  const { server, files, withSudo } = choices;
  const environment = key === undefined ? [] : [`SERVICE_API_KEY=${shellQuoted(key)}`];
  const shell = [
    ...(withSudo ? ['sudo', ...(key === undefined ? [] : ['env'])] : []),
    ...environment,
    'sh -s --',
  ];
  const options = [
    ['--server', server],
    ['--certificate', choices.certificate],
    ...files.map(({ artifact, output }) => [
      '--file',
      output === '' || output === artifact ? artifact : `${artifact}=${output}`,
    ]),
    ['--destination', choices.destination],
    ['--owner', choices.owner],
    ['--group', choices.group],
    ['--reload-command', choices.reloadCommand],
    ['--schedule', choices.schedule],
    ['--verify', choices.verify],
  ].filter(([, value]) => value !== '');
  const script = shellQuoted(`${server}/client/install.sh`);
  return [
    `curl -fsSL ${script} | ${shell.join(' ')}`,
    ...options.map(([option = '', value = '']) => `${option} ${shellQuoted(value)}`),
  ].join(' \\\n  ');
}
