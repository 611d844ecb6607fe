/** Options that limit how many lines a command prints. */
import { Misuse } from './misuse.ts';

const maximum = 1000;

/** The option of commands that list the newest entries. */
export const limitOption = {
  type: 'string',
  valueHint: 'N',
  description: 'the maximum number of entries (default: 50)',
} as const;

/** The value of `limitOption`; `more` is a hint on how to get all entries. Throws Misuse. */
export function limitFrom(text: string | undefined, more = ''): number {
  return countFrom('--limit', text, { least: 1, usual: 50, more });
}

/** The value of a count option from `least` to 1000, or `usual` if it is not given. Throws Misuse. */
export function countFrom(
  option: string,
  text: string | undefined,
  { least, usual, more = '' }: { readonly least: number; readonly usual: number; readonly more?: string },
): number {
  if (text === undefined) return usual;
  const count = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= least && count <= maximum) return count;
  throw new Misuse(
    `${option}: "${text}" is not a number from ${least} to ${maximum}`,
    `Use a number such as ${usual}${more === '' ? '' : `; ${more}`}.`,
  );
}
