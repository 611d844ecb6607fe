/** docs/operations.md: its table of settings has each flag with its variable and its name in vault.yaml. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { commonOptions, serveOptions } from '../../../src/cli/settings/settings.ts';

const doc = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');

test('every setting stands in the table', () => {
  for (const flag of [...Object.keys(commonOptions), ...Object.keys(serveOptions)]) {
    const key = flag.replaceAll('-', '_');
    const row = `| \`--${flag}\` | \`VAULT_${key.toUpperCase()}\` | ${flag === 'config' ? '' : `\`${key}\` `}|`;
    assert.ok(doc.includes(row), row);
  }
});
