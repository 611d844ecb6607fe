/** The `vault` command: finds and runs the subcommand, and turns errors into messages and an exit code. */
import { type CommandDef, defineCommand, runCommand } from 'citty';
import { OperatorError } from '../../base/operator-error.ts';
import { printable, printableLines } from '../../base/printable-text.ts';
import { Problem } from '../../base/problem.ts';
import { describeFileError, describeSystemError, isNoSpaceError } from '../../base/system-error.ts';
import { didYouMean } from '../../domain/closest-names.ts';
import { bundleReader, inspector } from '../../net/bundle-process.ts';
import { scheduledBackup } from '../../net/own-program.ts';
import { refuseHostCommand } from '../remote/remote-commands.ts';
import { serverChoice, takeServerOptions } from '../remote/server-choice.ts';
import { Misuse } from '../terminal/misuse.ts';
import type { Terminal } from '../terminal/terminal.ts';

const description = 'Store, renew and serve TLS certificates';

/** Loaded on demand, so that short commands do not load the server. */
const commands: Record<string, () => Promise<CommandDef>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  demo: async () => (await import('./demo.ts')).demoCommand,
  'systemd-unit': async () => (await import('./systemd-unit.ts')).systemdUnitCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  certificate: async () => (await import('./certificate/certificate.ts')).certificateCommands,
  inspect: async () => (await import('./inspect.ts')).inspectCommand,
  renewals: async () => (await import('./renewals.ts')).renewalsCommands,
  replace: async () => (await import('./replace/replace.ts')).replaceCommands,
  fleet: async () => (await import('./fleet.ts')).fleetCommands,
  endpoint: async () => (await import('./endpoint/endpoint.ts')).endpointCommands,
  'deploy-target': async () => (await import('./deploy-target/deploy-target.ts')).deployTargetCommands,
  'api-key': async () => (await import('./api-key/api-key.ts')).apiKeyCommands,
  enrollment: async () => (await import('./enrollment/enrollment.ts')).enrollmentCommands,
  'acme-client': async () => (await import('./acme-client/acme-client.ts')).acmeClientCommands,
  admin: async () => (await import('./admin.ts')).adminCommands,
  oidc: async () => (await import('./oidc.ts')).oidcCommands,
  login: async () => (await import('./login.ts')).loginCommand,
  logout: async () => (await import('./login.ts')).logoutCommand,
  issuer: async () => (await import('./issuer/issuer.ts')).issuerCommands,
  ca: async () => (await import('./ca/ca.ts')).caCommands,
  'acme-account': async () => (await import('./issuer/acme-account.ts')).acmeAccountCommands,
  'dns-provider': async () => (await import('./dns-provider.ts')).dnsProviderCommands,
  notification: async () => (await import('./notification/notification.ts')).notificationCommands,
  audit: async () => (await import('./audit/audit.ts')).auditCommands,
  backup: async () => (await import('./backup/backup.ts')).backupCommand,
  restore: async () => (await import('./backup/restore.ts')).restoreCommand,
  database: async () => (await import('./backup/database.ts')).databaseCommands,
  'master-key': async () => (await import('./master-key/master-key.ts')).masterKeyCommands,
  apply: async () => (await import('./desired-state/apply.ts')).applyCommand,
  export: async () => (await import('./desired-state/export.ts')).exportCommand,
  completion: async () => (await import('../completion/completion.ts')).completionCommand(() => root),
  man: async () => (await import('../completion/man.ts')).manCommand(() => root),
  licenses: async () => (await import('./licenses.ts')).licensesCommand,
  version: async () => (await import('./version.ts')).versionCommand,
};

/** The command tree. */
export const root = defineCommand({ meta: { name: 'vault', description }, subCommands: commands });

/** Short words for commands, in the groups that have one of these. */
const aliases = new Map([
  ['ls', ['list']],
  ['rm', ['delete', 'remove']],
]);

/** The command of a group that options without a command are for. */
const begins = 'start';

/** Loaded on demand: it needs the settings, which take longer to load than a short command runs. */
const help = () => import('../completion/help.ts');

type CommandMatch = {
  readonly command: CommandDef;
  readonly rest: readonly string[];
};

/**
 * Runs the command line `argv` (without the program's name) and returns its exit code: 0 done, 1 refused, 2 misused.
 */
export async function run(words: readonly string[], machine: Terminal): Promise<number> {
  let terminal = machine;
  try {
    const { given, rest: argv } = takeServerOptions(words);
    terminal = { ...machine, server: serverChoice(given, machine.environment) };
    if (argv[0] === '--version') {
      terminal.stdout.write(`${terminal.version}\n`);
      return 0;
    }
    if (argv[0] === bundleReader) {
      await (await import('./bundle-reader.ts')).answerBundleRequest(terminal);
      return 0;
    }
    if (argv[0] === inspector) {
      await (await import('./bundle-reader.ts')).answerInspectionRequest(terminal);
      return 0;
    }
    if (argv[0] === scheduledBackup) {
      await (await import('./backup/scheduled-backup.ts')).answerBackupRequest(terminal);
      return 0;
    }
    if (argv[0] === 'help' && argv[1] === 'options') {
      terminal.stdout.write((await help()).optionsHelp(terminal.stdout));
      return 0;
    }
    if (argv.length === 0) {
      terminal.stderr.write(await (await help()).helpText(root, root, terminal.stderr));
      return 2;
    }
    const asked = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
    const { command, rest } = await findCommand(asked);
    if (rest.includes('--help') || rest.includes('-h')) {
      terminal.stdout.write(await (await help()).helpText(command, root, terminal.stdout));
      return 0;
    }
    if (command.subCommands !== undefined) {
      throw new Misuse(
        `missing command; use one of ${subCommandNames(command).join(', ')}`,
        `Try: vault ${argv.join(' ')} --help`,
      );
    }
    if (terminal.server !== undefined) refuseHostCommand(await nameOf(command));
    // citty would check required options itself; our strict parser must run first.
    await runCommand(withoutRequirements(command), { rawArgs: [...rest], data: terminal });
    return 0;
  } catch (error) {
    return reportError(error, terminal);
  }
}

async function findCommand(argv: readonly string[]): Promise<CommandMatch> {
  let match: CommandMatch = { command: root, rest: argv };
  while (match.command.subCommands !== undefined) {
    const [word, ...rest] = match.rest;
    if (word === undefined || word === '--help' || word === '-h') return match;
    const known = subCommandNames(match.command);
    const alias = aliases.get(word)?.find((name) => known.includes(name));
    if (word.startsWith('-') && known.includes(begins)) {
      return { command: await subCommand(match.command, begins), rest: match.rest };
    }
    if (word.startsWith('-'))
      throw new Misuse(`option ${word} precedes the command`, 'Write options after the command.');
    if (alias === undefined && !known.includes(word)) {
      throw new Misuse(
        `unknown command "${word}"`,
        didYouMean(word, known, `Commands are ${known.join(', ')}.`),
      );
    }
    match = { command: await subCommand(match.command, alias ?? word), rest };
  }
  return match;
}

function subCommandNames({ subCommands }: CommandDef): string[] {
  return Object.keys(subCommands ?? {});
}

async function subCommand({ subCommands }: CommandDef, name: string): Promise<CommandDef> {
  const next = (subCommands as Record<string, CommandDef | (() => Promise<CommandDef>)>)[name];
  if (next === undefined) throw new Error(`no command ${name}`);
  return typeof next === 'function' ? next() : next;
}

async function nameOf({ meta }: CommandDef): Promise<string> {
  const { name = '' } = (await (typeof meta === 'function' ? meta() : meta)) ?? {};
  return name;
}

function withoutRequirements({ args: _, ...command }: CommandDef): CommandDef {
  return command;
}

/**
 * Prints the error for people and returns the exit code. Errors quote files, servers and arguments, so nothing in them
 * reaches the terminal as it is. The stack of a bug is printed only with CERTVAULT_DEBUG.
 */
export function reportError(thrown: unknown, { stderr, environment }: Terminal): number {
  const error = machineTrouble(thrown) ?? thrown;
  const print = (message: string) => stderr.write(`vault: ${printable(message)}\n`);
  const printHint = (hint: string) =>
    stderr.write(`  ${printableLines(hint).replaceAll(/\n(?! |Try:|Fix:)/g, '\n  ')}\n`);
  if (error instanceof Misuse) {
    print(error.message);
    printHint(error.hint);
    return 2;
  }
  if (error instanceof Problem || error instanceof OperatorError) {
    // The paths in `errors` are JSON paths of the API; on the command line, show only the messages.
    const inputErrors = error instanceof Problem ? error.errors.map(({ message }) => message) : [];
    const lines = inputErrors.length > 0 ? inputErrors : [error.message];
    for (const line of lines) print(line);
    if (error.hint !== undefined) printHint(error.hint);
    return 1;
  }
  const { stack } = error instanceof Error ? error : new Error(String(error));
  print(`internal error: ${describeFileError(error)}`);
  printHint('This is a bug. Run the command again with CERTVAULT_DEBUG=1 and report the output.');
  if (environment.CERTVAULT_DEBUG || environment.VAULT_DEBUG) {
    stderr.write(`${printableLines(String(stack))}\n`);
  }
  return 1;
}

const descriptors = 'Raise the limit of open files: "ulimit -n", or LimitNOFILE= in the systemd unit.';
const space = 'Free disk space, then try again.';

/** For errors of the operating system that can occur anywhere and are not bugs to report: how to fix each. */
const hints: Readonly<Record<string, string>> = {
  EMFILE: descriptors,
  ENFILE:
    'All programs together have too many files open. Raise the sysctl fs.file-max, or stop some programs.',
  EIO: 'Check the disk and the kernel log, then try again.',
  EROFS: 'The disk is mounted read-only. Mount it read-write, then try again.',
  ENOMEM: 'Give the vault more memory, or stop other programs.',
};

/** The error for the operator if it comes from the operating system; otherwise undefined. */
export function machineTrouble(error: unknown): OperatorError | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const known = typeof code === 'string' && Object.hasOwn(hints, code) ? hints[code] : undefined;
  const hint = isNoSpaceError(error) ? space : known;
  if (hint === undefined) return undefined;
  return new OperatorError(`system error: ${describeSystemError(error)}`, { hint, cause: error });
}
