/** Options that say how many lines a command prints. */
import { Misuse } from './misuse.ts';

const most = 1000;

/** Of commands that list the newest. */
export const limitOption = {
  type: 'string',
  valueHint: 'N',
  description: 'how many at most (default: 50)',
} as const;

/** What `limitOption` says; `more` is how to have all of them. Throws Misuse. */
export function limitFrom(text: string | undefined, more = ''): number {
  return countFrom('--limit', text, { least: 1, usual: 50, more });
}

/** What an option says, from `least` to a thousand; `usual` where it is left out. Throws Misuse. */
export function countFrom(
  option: string,
  text: string | undefined,
  { least, usual, more = '' }: { readonly least: number; readonly usual: number; readonly more?: string },
): number {
  if (text === undefined) return usual;
  const count = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= least && count <= most) return count;
  throw new Misuse(
    `${option} ${text} is not a number from ${least} to ${most}`,
    `Write ${option} ${usual}${more === '' ? '.' : `; ${more}`}`,
  );
}
