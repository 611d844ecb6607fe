/** The manual page: every command and option is in it, and the program that reads manuals finds nothing wrong. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { allCommands } from '../../harness/command-tree.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { vault } from '../../harness/processes/vault-process.ts';

test(
  'the manual page contains every command with its options and examples, and passes mandoc lint',
  needs('mandoc'),
  async () => {
    const { code, stdout, stderr } = await vault(['man']);
    assert.deepEqual([code, stderr], [0, '']);
    // Long lines are no fault: the text comes from elsewhere.
    const complaints = execFileSync('mandoc', ['-T', 'lint', '-W', 'warning'], {
      input: stdout,
      encoding: 'utf8',
    });
    assert.equal(complaints, '');
    const page = execFileSync('mandoc', ['-T', 'utf8', '-O', 'width=300'], {
      input: stdout,
      encoding: 'utf8',
    })
      // Bold and italic are overstruck.
      .replace(new RegExp(`.${String.fromCharCode(8)}`, 'g'), '');
    for (const { words, specs, examples } of await allCommands()) {
      const section = page.split(`\n   vault ${words.join(' ')}\n`)[1] ?? '';
      assert.ok(section !== '', words.join(' '));
      for (const name of Object.keys(specs)) {
        if (specs[name]?.positional !== true) assert.ok(page.includes(`--${name}`), name);
      }
      for (const { line } of examples) assert.ok(section.includes(line), line);
    }
  },
);
