/** The console has the same recipes as docs/reference/client-installer.md. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { recipes } from '../../../assets/console/installer/installer-recipes.ts';
import { installerCommand } from '../../../assets/console/installer/shell-command.ts';

const manual = readFileSync(new URL('../../../docs/reference/client-installer.md', import.meta.url), 'utf8');

/** The options and the configuration under a heading of the manual. */
function documented(title: string): { options: string[]; configuration: string } {
  const [, part = ''] = manual.split(`### ${title}\n`);
  const [, command = ''] = /```sh\n([^`]*)```/.exec(part) ?? [];
  const [, configuration = ''] = /```conf\n([^`]*)```/.exec(part) ?? [];
  return { options: optionsIn(command), configuration: configuration.trim() };
}

function optionsIn(command: string): string[] {
  const joined = command.replaceAll(/\\\n\s*/g, ' ').trim();
  return joined
    .split(/ +(?=--[a-z])/)
    .map((option) => option.trim())
    .filter((option) => !option.startsWith('--certificate'))
    .sort();
}

for (const { title, configuration, ...rest } of Object.values(recipes)) {
  if (title === recipes.other.title) continue;
  test(`the recipe for ${title} matches the docs`, () => {
    const plain = {
      trust: 'public',
      pin: '',
      caFile: '',
      schedule: '',
      withLocalKey: false,
      withSudo: false,
    } as const;
    const choices = { ...rest, ...plain, server: 'https://v', certificate: 'web' };
    const [, options = ''] = installerCommand(choices, undefined).split('--server https://v');
    assert.deepEqual(optionsIn(options.replace(/^ \\\n\s*/, '')), documented(title).options);
    // Proxmox finds the files by their names; the manual only lists them.
    if (configuration !== '') assert.equal(configuration, documented(title).configuration);
  });
}
