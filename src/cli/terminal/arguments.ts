/**
 * Parses the options of a command strictly: repeatable options keep every value; unknown options and stray words are
 * errors. citty, which finds commands and prints usage, would accept both.
 */
import { parseArgs } from 'node:util';
import { didYouMean } from '../../domain/closest-names.ts';
import { Misuse } from './misuse.ts';

export type OptionSpec = {
  readonly type: 'string' | 'boolean';
  readonly description: string;
  readonly valueHint?: string;
  readonly required?: boolean;
  /** May be repeated; all values are kept. */
  readonly multiple?: boolean;
  /**
   * A positional argument; they are filled in the order of the table. With `or-flag` it may be given as an option
   * instead.
   */
  readonly positional?: true | 'or-flag';
  /** The one-letter form. */
  readonly short?: string;
  /** All allowed values, for shell completion. */
  readonly values?: readonly string[];
  /** The kind of object whose names are its values, for shell completion. */
  readonly names?: 'certificates' | 'issuers' | 'dns-providers';
};

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type ValueOf<S extends OptionSpec> = S['type'] extends 'boolean'
  ? boolean
  : S extends { multiple: true }
    ? string[]
    : S extends { required: true }
      ? string
      : string | undefined;

export type Arguments<S extends OptionSpecs> = { readonly [K in keyof S]: ValueOf<S[K]> };

/** The values of the options. Throws Misuse if `raw` does not match `specs`; `usage` is the command for the hint. */
export function readArguments<S extends OptionSpecs>(
  specs: S,
  raw: readonly string[],
  usage: string,
): Arguments<S> {
  const { tokens } = parseArgs({
    args: [...raw],
    options: Object.fromEntries(
      Object.entries<OptionSpec>(specs).map(([name, { type, short }]) => [
        name,
        short === undefined ? { type } : { type, short },
      ]),
    ),
    strict: false,
    tokens: true,
  });
  const collected = new Map<string, string[]>();
  const help = `Try: ${usage} --help`;
  const flags = new Set(tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : [])));
  const positional = Object.keys(specs).filter((name) => specs[name]?.positional !== undefined);
  // A word is first one that no option gives.
  const words = positional.toSorted((one, other) => Number(flags.has(one)) - Number(flags.has(other)));
  for (const token of tokens) {
    if (token.kind === 'positional') {
      const name = words.shift();
      if (name === undefined) throw new Misuse(`unexpected argument "${token.value}"`, help);
      collected.set(name, [...(collected.get(name) ?? []), token.value]);
    }
    if (token.kind !== 'option') continue;
    // hasOwn, so that inherited names such as "constructor" are not options.
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined;
    const isWritten = token.rawName.startsWith('--') || token.rawName === `-${spec?.short}`;
    if (spec === undefined || spec.positional === true || !isWritten) {
      const options = Object.keys(specs).filter((name) => specs[name]?.positional !== true);
      const names = options.map((name) => `--${name}`);
      throw new Misuse(`unknown option ${token.rawName}`, didYouMean(token.rawName, names, help));
    }
    const values = collected.get(token.name) ?? [];
    collected.set(token.name, [...values, tokenValue(token, spec)]);
  }
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [name, settled(name, spec, collected.get(name), help)]),
  ) as Arguments<S>;
}

function tokenValue(
  {
    name,
    rawName,
    value,
    inlineValue,
  }: { name: string; rawName: string; value: string | undefined; inlineValue: boolean | undefined },
  { type, valueHint = 'VALUE' }: OptionSpec,
): string {
  if (type === 'boolean') {
    if (inlineValue === true)
      throw new Misuse(`${rawName} takes no value`, `Write ${rawName} without a value.`);
    return 'true';
  }
  if (value === undefined) throw new Misuse(`${rawName} needs a value`, `Write ${rawName} ${valueHint}.`);
  if (inlineValue !== true && value.startsWith('-') && value !== '-') {
    throw new Misuse(
      `${rawName} needs a value, but is followed by "${value}"`,
      `If that is the value, write --${name}=${value}.`,
    );
  }
  return value;
}

function settled(
  name: string,
  { type, required, multiple, positional, valueHint }: OptionSpec,
  values: readonly string[] | undefined,
  help: string,
): string | string[] | boolean | undefined {
  if (type === 'boolean') return values !== undefined;
  if (values === undefined) {
    const shown = positional === true ? valueHint : `--${name}`;
    if (required === true) throw new Misuse(`${shown} is missing`, help);
    return multiple === true ? [] : undefined;
  }
  if (multiple === true) return [...values];
  if (values.length > 1) throw new Misuse(`--${name} is given ${values.length} times`, 'Give it only once.');
  return values[0];
}
