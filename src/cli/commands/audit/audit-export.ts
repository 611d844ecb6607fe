/** `vault audit export`: writes audit events to a file, oldest first, streaming any number of them. */
import { createWriteStream, existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { removeFile } from '../../../base/durable-file.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { describeSystemError } from '../../../base/system-error.ts';
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
  description: 'Export audit events as JSON Lines or CSV, oldest first',
  examples: [
    {
      does: 'Export one year as CSV',
      line: 'vault audit export --since 2026-01-01 --until 2027-01-01 --format csv --output audit.csv',
    },
    {
      does: 'Export everything, for "vault audit verify --file"',
      line: 'vault audit export --output audit.jsonl',
    },
    {
      does: 'Export the last day, compressed',
      line: 'vault audit export --since 1d | gzip > audit.jsonl.gz',
    },
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
      description: 'a new file to write (default: -, standard output)',
    },
  },
  run: async ({ format: name = 'jsonl', output = '-', ...args }, terminal) => {
    const filter = auditFilter(args, terminal.world.now());
    const format = auditFormats.find((known) => known === name);
    if (format === undefined) {
      throw new Misuse(`--format: unknown format "${name}"`, `Use one of ${auditFormats.join(', ')}.`);
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const events = Readable.from(exportAuditEvents(vault, filter, format, 'oldest first'));
      if (output === '-') await pipeline(events, terminal.stdout, { end: false });
      else await writeNew(output, events, terminal);
    });
  },
});

/** Writes a new file under a draft name and renames it once it is complete. */
async function writeNew(path: string, events: Readable, { world }: Terminal): Promise<void> {
  if (existsSync(path)) throw alreadyExists(path);
  const draft = join(dirname(path), `.${basename(path)}.${world.randomBytes(8).toString('hex')}.draft`);
  try {
    const file = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(events, file, { signal: stopSignal() });
    publishDraft(draft, path, 'refuse');
  } catch (error) {
    removeFile(draft);
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyExists(path, error);
    throw new OperatorError(`cannot write ${path}: ${describeSystemError(error)}`, {
      hint: 'Check the directory and its free space. No file was written.',
      cause: error,
    });
  }
}

function alreadyExists(path: string, cause?: unknown): OperatorError {
  return new OperatorError(`${path} already exists`, {
    hint: 'Choose another name with --output, or move the file away. Nothing was written.',
    cause,
  });
}
