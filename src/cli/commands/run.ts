/** The `vault` command: finds what was asked for, runs it, and turns what goes wrong into a sentence and an exit code. */
import { type CommandDef, defineCommand, runCommand } from 'citty';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { didYouMean } from '../../domain/closest-names.ts';
import { bundleReader } from '../../net/bundle-process.ts';
import { helpText } from '../completion/help.ts';
import { machineTrouble } from '../runtime/machine-trouble.ts';
import { Misuse } from '../terminal/misuse.ts';
import type { Terminal } from '../terminal/terminal.ts';

const description = 'Holds TLS certificates, keeps them renewed, hands them to machines';

/** Each is loaded when it is asked for: whoever makes an API key need not wait for a server's parts. */
const commands: Record<string, () => Promise<CommandDef>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  certificate: async () => (await import('./certificate/certificate.ts')).certificateCommands,
  renewals: async () => (await import('./renewals.ts')).renewalsCommands,
  'api-key': async () => (await import('./api-key.ts')).apiKeyCommands,
  issuer: async () => (await import('./issuer.ts')).issuerCommands,
  'acme-account': async () => (await import('./acme-account.ts')).acmeAccountCommands,
  'dns-provider': async () => (await import('./dns-provider.ts')).dnsProviderCommands,
  notification: async () => (await import('./notification.ts')).notificationCommands,
  admin: async () => (await import('./admin.ts')).adminCommands,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  audit: async () => (await import('./audit/audit.ts')).auditCommands,
  apply: async () => (await import('./desired-state/apply.ts')).applyCommand,
  export: async () => (await import('./desired-state/export.ts')).exportCommand,
  backup: async () => (await import('./backup.ts')).backupCommand,
  'master-key': async () => (await import('./master-key.ts')).masterKeyCommands,
  'systemd-unit': async () => (await import('./systemd-unit.ts')).systemdUnitCommand,
  licenses: async () => (await import('./licenses.ts')).licensesCommand,
  restore: async () => (await import('./restore.ts')).restoreCommand,
  completion: async () => (await import('../completion/completion.ts')).completionCommand(() => root),
  man: async () => (await import('../completion/man.ts')).manCommand(() => root),
  version: async () => (await import('./version.ts')).versionCommand,
};

/** All commands, below the program itself. */
export const root = defineCommand({ meta: { name: 'vault', description }, subCommands: commands });

type Found = {
  readonly command: CommandDef;
  readonly rest: readonly string[];
};

/** Runs the command line `argv` (without the program's name) and returns its exit code: 0 done, 1 refused, 2 misused. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    if (argv[0] === '--version') {
      terminal.stdout.write(`${terminal.version}\n`);
      return 0;
    }
    if (argv[0] === bundleReader) {
      await (await import('./bundle-reader.ts')).answerBundleRequest(terminal);
      return 0;
    }
    const asked = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
    const { command, rest } = await find(asked);
    if (rest.includes('--help') || rest.includes('-h')) {
      terminal.stdout.write(await helpText(command, root, terminal.stdout));
      return 0;
    }
    if (command.subCommands !== undefined) {
      const words = argv.length === 0 ? 'vault' : `vault ${argv.join(' ')}`;
      throw new Misuse(`which command? ${subCommandNames(command).join(', ')}`, `See "${words} --help".`);
    }
    // citty's own reading of the arguments looks at what is required only; the strict one comes first.
    await runCommand(withoutRequirements(command), { rawArgs: [...rest], data: terminal });
    return 0;
  } catch (error) {
    return report(error, terminal);
  }
}

async function find(argv: readonly string[]): Promise<Found> {
  let found: Found = { command: root, rest: argv };
  while (found.command.subCommands !== undefined) {
    const [word, ...rest] = found.rest;
    if (word === undefined || word === '--help' || word === '-h') return found;
    const known = subCommandNames(found.command);
    if (word.startsWith('-'))
      throw new Misuse(`${word} stands before the command`, 'Options come after the command.');
    if (!known.includes(word)) {
      throw new Misuse(
        `there is no command "${word}"`,
        didYouMean(word, known, `Commands are ${known.join(', ')}.`),
      );
    }
    found = { command: await subCommand(found.command, word), rest };
  }
  return found;
}

function subCommandNames({ subCommands }: CommandDef): string[] {
  return Object.keys(subCommands ?? {});
}

async function subCommand({ subCommands }: CommandDef, name: string): Promise<CommandDef> {
  const next = (subCommands as Record<string, CommandDef | (() => Promise<CommandDef>)>)[name];
  if (next === undefined) throw new Error(`no command ${name}`);
  return typeof next === 'function' ? next() : next;
}

function withoutRequirements({ args: _, ...command }: CommandDef): CommandDef {
  return command;
}

function report(thrown: unknown, { stderr, environment }: Terminal): number {
  const error = machineTrouble(thrown) ?? thrown;
  if (error instanceof Misuse) {
    stderr.write(`vault: ${error.message}\n  ${error.hint}\n`);
    return 2;
  }
  if (error instanceof Problem || error instanceof OperatorError) {
    // The paths of refused input are the API's; here each message stands for itself.
    const refused = error instanceof Problem ? error.errors.map(({ message }) => message) : [];
    const lines = refused.length > 0 ? refused : [error.message];
    for (const line of lines) stderr.write(`vault: ${line}\n`);
    if (error.hint !== undefined) stderr.write(`  ${error.hint}\n`);
    return 1;
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  stderr.write(
    `vault: this should not have happened: ${message}\n  Please report it with what VAULT_DEBUG=1 shows.\n`,
  );
  if (environment.VAULT_DEBUG) stderr.write(`${stack}\n`);
  return 1;
}
