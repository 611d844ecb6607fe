/** Reads the settings file: `name: value` lines of known settings. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { openWalked, refuseUntrusted } from '../../base/paths/trusted-path.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { didYouMean } from '../../domain/closest-names.ts';
import { sections } from '../../domain/desired-state/desired-sections.ts';
import { refuseForeignSettings } from '../terminal/private-files.ts';

/**
 * The values in the file by key; none if the file does not exist and `mustExist` is false. Throws OperatorError for a
 * file that cannot be read, is not YAML, or has a key that is not in `known`.
 */
export async function readSettingsFile(
  path: string,
  {
    known,
    dataDir,
    mustExist,
  }: { readonly known: readonly string[]; readonly dataDir: string; readonly mustExist: boolean },
): Promise<{ readonly path: string; readonly values: ReadonlyMap<string, string> }> {
  const invalid = (message: string, hint: string) =>
    new OperatorError(`settings file ${path}: ${message}`, { hint });
  let content: string;
  try {
    if (!mustExist && !(await mayExist(path))) return { path, values: new Map() };
    await refuseForeignSettings(path, dataDir);
    content = await trustedContent(resolve(path), resolve(dataDir));
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw invalid(describeSystemError(error), 'Use --config to name a file that this user can read.');
  }
  const { parse } = await import('yaml');
  let parsed: unknown;
  try {
    parsed = parse(content) ?? {};
  } catch (error) {
    throw invalid(yamlErrorText(error), 'Fix the file, or move it away.');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw invalid(
      'not a list of settings',
      'Write one "name: value" on each line, such as "listen: 127.0.0.1:8080".',
    );
  }
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed)) {
    if (!known.includes(name) && ['version', ...sections].includes(name)) {
      throw invalid(
        `"${name}" belongs in a file for "vault apply"`,
        'Move it to another file and apply that with "vault apply -f FILE". This file holds only server settings.',
      );
    }
    if (!known.includes(name)) {
      throw invalid(
        `unknown setting "${name}"`,
        didYouMean(name, known, `Known settings are ${known.join(', ')}.`),
      );
    }
    // A list, such as a program with arguments, is JSON text in flags and environment.
    if (Array.isArray(value) && value.every((word) => typeof word === 'string')) {
      values.set(name, JSON.stringify(value));
      continue;
    }
    if (typeof value === 'object')
      throw invalid(`"${name}" needs a plain value`, 'Use text, a number, true or false.');
    values.set(name, String(value));
  }
  return { path, values };
}

/**
 * Rejects with the error of the system if its disk fails. The file of another user's vault does not exist for this one.
 */
async function mayExist(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (/^(ENOENT|ENOTDIR|EACCES|ELOOP)$/.test(String((error as NodeJS.ErrnoException).code))) return false;
    throw error;
  }
}

/** The settings decide which programs run. The data directory has checks of its own. */
async function trustedContent(path: string, dataDir: string): Promise<string> {
  const use = { what: 'the settings file', groups: 'above', trusted: dataDir } as const;
  const file = await openWalked(await refuseUntrusted(path, use));
  // A pipe of the shell, or a path that leads nowhere.
  if (file === undefined) return readFile(path, 'utf8');
  try {
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** The first line of the parser's error, without the lines of the file that follow it. */
function yamlErrorText(error: unknown): string {
  const [first = ''] = String((error as Error).message).split('\n', 1);
  return `invalid YAML: ${first.replace(/:$/, '').replace(/^[A-Z]/, (letter) => letter.toLowerCase())}`;
}
