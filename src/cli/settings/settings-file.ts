/** The settings file: one `name: value` on each line, and nothing that is not a setting. */
import { existsSync, readFileSync } from 'node:fs';
import { OperatorError } from '../../base/operator-error.ts';
import { didYouMean } from '../../domain/closest-names.ts';
import { sections } from '../../domain/desired-state/desired-sections.ts';
import { refuseForeignSettings } from '../terminal/private-files.ts';

/**
 * The values in the file by their keys; none where there is no file and `mustExist` does not say otherwise. Throws
 * OperatorError for a file that cannot be read, is no YAML, or names what is not in `known`.
 */
export async function readSettingsFile(
  path: string,
  { known, mustExist }: { readonly known: readonly string[]; readonly mustExist: boolean },
): Promise<{ readonly path: string; readonly values: ReadonlyMap<string, string> }> {
  if (!mustExist && !existsSync(path)) return { path, values: new Map() };
  refuseForeignSettings(path);
  const wrong = (message: string, hint: string) =>
    new OperatorError(`the settings file ${path} ${message}`, { hint });
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw wrong(`cannot be read: ${(error as Error).message}`, 'Name a readable file with --config.');
  }
  const { parse } = await import('yaml');
  let parsed: unknown;
  try {
    parsed = parse(content) ?? {};
  } catch (error) {
    throw wrong(`is not YAML: ${(error as Error).message}`, 'Mend it, or move it away.');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw wrong(
      'holds no settings',
      'Write one "name: value" on each line, such as "listen: 127.0.0.1:8080".',
    );
  }
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed)) {
    if (!known.includes(name) && ['version', ...sections].includes(name)) {
      throw wrong(
        `is one for "vault apply": it begins with "${name}"`,
        'Give that one another name, and apply it with "vault apply -f FILE". This file is for the server alone.',
      );
    }
    if (!known.includes(name)) {
      throw wrong(
        `has an unknown setting "${name}"`,
        didYouMean(name, known, `Known are ${known.join(', ')}.`),
      );
    }
    // A list, as of a program and its arguments, is text in the other places for settings: JSON.
    if (Array.isArray(value) && value.every((word) => typeof word === 'string')) {
      values.set(name, JSON.stringify(value));
      continue;
    }
    if (typeof value === 'object')
      throw wrong(`has no plain value for "${name}"`, 'Write text, a number, true or false.');
    values.set(name, String(value));
  }
  return { path, values };
}
