/** Defines commands: from our strict option table comes citty's definition, which renders the usage. */
import { type ArgsDef, type CommandDef, defineCommand } from 'citty';
import { commonOptions } from '../settings/settings.ts';
import { type Arguments, type OptionSpec, type OptionSpecs, readArguments } from '../terminal/arguments.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** A command line for a POSIX shell, and what it does. Tests run it unchanged. */
export type Example = { readonly does: string; readonly line: string };

/** A command as the help, the shell completions and the manual page need it. */
export type VaultCommand = CommandDef & {
  readonly options: OptionSpecs;
  readonly examples: readonly Example[];
};

type Definition<S extends OptionSpecs, Given extends OptionSpecs> = {
  readonly name: string;
  readonly description: string;
  /** At least one; test/cli/completion/help.test.ts runs those that need only a vault. */
  readonly examples: readonly [Example, ...Example[]];
  readonly options: S;
  readonly run: (args: Arguments<Given>, terminal: Terminal) => Promise<void>;
};

/** Defines a command that works on a vault; adds the options in `commonOptions`. */
export function command<S extends OptionSpecs>(
  definition: Definition<S, S & typeof commonOptions>,
): VaultCommand {
  return commandWithoutVault<S & typeof commonOptions>({
    ...definition,
    options: { ...definition.options, ...commonOptions },
  });
}

/** Defines a command that needs no vault. */
export function commandWithoutVault<S extends OptionSpecs>({
  name,
  description,
  examples,
  options,
  run,
}: Definition<S, S>): VaultCommand {
  const definition = defineCommand<ArgsDef>({
    meta: { name, description },
    args: Object.fromEntries(
      Object.entries<OptionSpecs[string]>(options).map(([option, spec]) => [
        option,
        {
          type: spec.positional === true ? 'positional' : spec.type,
          description: describe(option, spec),
          required: spec.required === true,
          ...(spec.valueHint !== undefined && { valueHint: spec.valueHint }),
          ...(spec.short !== undefined && { alias: spec.short }),
        },
      ]),
    ),
    run: ({ rawArgs, data }) => run(readArguments(options, rawArgs, `vault ${name}`), data as Terminal),
  });
  return { ...definition, options, examples } as VaultCommand;
}

/** The description in the usage, with what the table of options says beside it. */
function describe(option: string, { description, multiple, positional }: OptionSpec): string {
  if (multiple === true) return `${description}; repeatable`;
  return positional === 'or-flag' ? `${description}; "--${option}" may be omitted` : description;
}

/** Defines a group of commands. */
export function commandGroup(
  name: string,
  description: string,
  subCommands: Record<string, CommandDef>,
): CommandDef {
  return defineCommand({ meta: { name, description }, subCommands });
}
