/**
 * Commands and options that the documentation names in its text exist: what is not run is at least spelled as the
 * product has it.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { commonOptions } from '../../src/cli/settings/settings.ts';
import { allCommands, type KnownCommand } from '../harness/command-tree.ts';

const root = join(import.meta.dirname, '..', '..');
const commands = await allCommands();

/** Options of others' programs, of the client scripts, and of scripts of the project. */
const others = new Set([
  ...[
    '--pin',
    '--ca-file',
    '--allow-http',
    '--server',
    '--schedule',
    '--key-file',
    '--destination',
    '--owner',
    '--listener-user',
  ],
  ...[
    '--status',
    '--verify',
    '--uninstall',
    '--mode',
    '--reload-command',
    '--insecure',
    '--pinnedpubkey',
    '--random-seed',
  ],
  ...['--allow-ip', '--hold', '--program', '--certificates', '--days', '--jitless', '--target', '--enroll'],
  ...[
    '--allow-not-yet-valid',
    '--run',
    '--set-key',
    '--watch',
    '--local-key',
    '--local-key-type',
    '--client-cert',
    '--client-key',
  ],
  ...['--ca', '--fingerprint', '--no-system', '--no-java', '--no-nss', '--java-store', '--root'],
]);

/** What is wrong with code that begins with `vault`, or with an option. */
function complaint(code: string): string | undefined {
  const words = code.replaceAll('…', ' ').split(/\s+/).filter(Boolean);
  const options = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.replace(/[=,:;.].*$/, ''));
  if (words[0] !== 'vault') {
    const known = (option: string) => others.has(option) || commands.some((one) => takes(one, option));
    return options.find((option) => !known(option));
  }
  if (words.length === 1 || words[1]?.startsWith('-')) return undefined;
  const name = words
    .slice(1)
    .filter((_, index, all) => !all.slice(0, index + 1).some((one) => one.startsWith('-')));
  // A command, with its arguments behind it; or a group of commands.
  const meant = commands.filter((one) => one.words.every((word, index) => name[index] === word));
  const below = commands.filter((one) => name.every((word, index) => one.words[index] === word));
  const candidates = meant.length > 0 ? meant : below;
  if (candidates.length === 0) return words.slice(0, 3).join(' ');
  return options.find((option) => !candidates.some((one) => takes(one, option)));
}

function takes({ specs }: KnownCommand, option: string): boolean {
  if (option === '--help') return true;
  const name = option.slice(2);
  const bare = name.replace(/^no-/, '');
  return [name, bare].some((one) => Object.hasOwn(specs, one) || Object.hasOwn(commonOptions, one));
}

test('commands and options in the text of the documentation exist', () => {
  const wrong: string[] = [];
  for (const page of ['README.md', ...globSync('docs/**/*.md', { cwd: root })]) {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
    for (const [, code = ''] of text.matchAll(/`((?:vault |--)[^`]*)`/g)) {
      const fault = complaint(code);
      if (fault !== undefined) wrong.push(`${page}: ${fault} in ${code}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('an unknown command or option is reported', () => {
  assert.equal(complaint('vault certificate make --name web'), 'vault certificate make');
  assert.equal(complaint('vault certificate create --nam web'), '--nam');
  assert.equal(complaint('--no-such-option'), '--no-such-option');
  assert.equal(complaint('vault certificate create --name web'), undefined);
});
