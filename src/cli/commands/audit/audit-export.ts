/** `vault audit export`: audit events as a file, in the order in which they happened, however many there are. */
import { createWriteStream, existsSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../../../base/operator-error.ts';
import { auditFormats, exportAuditEvents } from '../../../domain/audit/audit-log.ts';
import { publishDraft } from '../../../domain/backup/backup-file.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { auditFilter, auditFilterOptions } from './audit-filter.ts';

export const exportCommand = command({
  name: 'audit export',
  description: 'write audit events as a file, oldest first: CSV, or one JSON object a line',
  examples: [
    {
      does: 'All of a year for an auditor',
      line: 'vault audit export --since 2026-01-01T00:00:00Z --until 2027-01-01T00:00:00Z --format csv --output audit.csv',
    },
    { does: 'All of it, as a copy that verifies anywhere', line: 'vault audit export --output audit.jsonl' },
    { does: 'The last day, for a program', line: 'vault audit export --since 1d | gzip > audit.jsonl.gz' },
  ],
  options: {
    ...auditFilterOptions,
    format: {
      type: 'string',
      valueHint: 'FORMAT',
      values: auditFormats,
      description: `one of ${auditFormats.join(', ')} (default: jsonl)`,
    },
    output: {
      type: 'string',
      valueHint: 'FILE',
      description: 'a new file to write to (default: - for standard output)',
    },
  },
  run: async ({ format: name = 'jsonl', output = '-', ...args }, terminal) => {
    const filter = auditFilter(args, terminal.world.now());
    const format = auditFormats.find((known) => known === name);
    if (format === undefined) {
      throw new Misuse(`--format ${name} is none`, `Write one of ${auditFormats.join(', ')}.`);
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const events = Readable.from(exportAuditEvents(vault, filter, format, 'oldest first'));
      if (output === '-') await pipeline(events, terminal.stdout, { end: false });
      else await writeNew(output, events, terminal);
    });
  },
});

/** Writes to a file that was not there; it has its name once it is whole, and not before. */
async function writeNew(path: string, events: Readable, { world }: Terminal): Promise<void> {
  if (existsSync(path)) throw thereAlready(path);
  const draft = join(dirname(path), `.${basename(path)}.${world.randomBytes(8).toString('hex')}.draft`);
  try {
    const file = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(events, file, { signal: stopSignal() });
    publishDraft(draft, path, 'refuse');
  } catch (error) {
    rmSync(draft, { force: true });
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw thereAlready(path, error);
    throw new OperatorError(`${path} cannot be written: ${(error as Error).message}`, {
      hint: 'Nothing was left there. Look at the directory and its space.',
      cause: error,
    });
  }
}

function thereAlready(path: string, cause?: unknown): OperatorError {
  return new OperatorError(`${path} is there already`, {
    hint: 'Name a new file, or move this one away. Nothing was written.',
    cause,
  });
}
