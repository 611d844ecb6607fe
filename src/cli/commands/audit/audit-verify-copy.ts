/** `vault audit verify --file`: verifies a copy of the audit log without the vault. */
import { createReadStream } from 'node:fs';
import { OperatorError } from '../../../base/operator-error.ts';
import { readPublicKeyPem } from '../../../crypto/ed25519.ts';
import {
  type Checkpoint,
  checkpointSignedBy,
  readCheckpoint,
} from '../../../domain/audit/audit-checkpoint.ts';
import { type ExportReport, verifyExport } from '../../../domain/audit/exported-audit-log.ts';
import { withVault } from '../../runtime/with-vault.ts';
import type { commonOptions } from '../../settings/settings.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { readInput, unreadable } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { reportText, reportView } from './audit-report.ts';

/** Most events have a few hundred characters; an event about thousands of certificates has about a million. */
const maxLineLength = 16 * 1024 * 1024;

type Given = Arguments<typeof commonOptions> & {
  readonly checkpoint: readonly string[];
  readonly 'public-key': string | undefined;
  readonly json: boolean;
};

/**
 * Verifies the lines of the file and prints the result. Throws OperatorError if the file differs from what was
 * recorded.
 */
export async function verifyCopy(path: string, args: Given, terminal: Terminal): Promise<void> {
  if (path === '-' && args.checkpoint.includes('-')) {
    throw new Misuse('only one option can read standard input', 'Name a file for --file or --checkpoint.');
  }
  const name = displayName(path);
  const checkpoints = await checkpointsFor(args, terminal);
  const report = await verifyExport(linesOf(path, terminal), checkpoints);
  if (report.events === 0) {
    throw new OperatorError(`${name} holds no audit events`, {
      hint: 'Use a JSON Lines file written by "vault audit export" or --audit-file. CSV cannot be verified.',
    });
  }
  terminal.stdout.write(
    args.json ? jsonText(copyView(report, checkpoints)) : copyText(report, checkpoints, name),
  );
  if (report.faultCount === 0) return;
  throw new OperatorError(`${name} failed verification`, {
    hint: 'A filtered export has gaps. Verify an export of all events, or of all events between two times.',
  });
}

/** The checkpoints in these files. Throws what `read` throws. */
export async function readAll(
  paths: readonly string[],
  terminal: Terminal,
  read: (text: string, name: string) => Checkpoint | Promise<Checkpoint>,
): Promise<Checkpoint[]> {
  const checkpoints: Checkpoint[] = [];
  for (const path of paths) {
    checkpoints.push(await read((await readInput(path, terminal)).toString(), displayName(path)));
  }
  return checkpoints;
}

/** Opens the vault only if its keys are needed. */
async function checkpointsFor(args: Given, terminal: Terminal): Promise<Checkpoint[]> {
  const { checkpoint: paths, 'public-key': keyFile } = args;
  if (keyFile !== undefined) {
    const key = readPublicKeyPem((await readInput(keyFile, terminal)).toString());
    if (key === undefined) {
      throw new OperatorError(`${keyFile} is not a checkpoint public key`, {
        hint: 'Use a file written by "vault audit public-key".',
      });
    }
    return readAll(paths, terminal, (text, name) => checkpointSignedBy([key], text, name));
  }
  let checkpoints: Checkpoint[] = [];
  if (paths.length === 0) return checkpoints;
  await withVault(args, terminal, 'refuse', async (vault) => {
    checkpoints = await readAll(paths, terminal, (text, name) => readCheckpoint(vault, text, name));
  });
  return checkpoints;
}

async function* linesOf(path: string, { stdin }: Terminal): AsyncIterable<string> {
  const input = path === '-' ? stdin : createReadStream(path);
  let rest = '';
  try {
    for await (const text of input.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > maxLineLength) throw new Error('not a text file with lines');
      yield* lines;
    }
    yield rest;
  } catch (error) {
    throw unreadable(displayName(path), error);
  }
}

function displayName(path: string): string {
  return path === '-' ? 'standard input' : path;
}

function copyView(report: ExportReport, checkpoints: readonly Checkpoint[]) {
  const { unproved, repeated, others } = report;
  return {
    ...reportView(report, checkpoints),
    unproved_id: unproved ?? null,
    repeated_events: repeated,
    other_lines: others,
  };
}

function copyText(report: ExportReport, checkpoints: readonly Checkpoint[], name: string): string {
  const { unproved, repeated, others } = report;
  const notes = [
    unproved === undefined
      ? ''
      : `Event ${unproved} could not be verified: the event before it is missing.\n`,
    repeated === 0 ? '' : `Repeated events: ${repeated}\n`,
    others === 0 ? '' : `Lines that are not events: ${others}\n`,
  ];
  return `${reportText(report, checkpoints, name)}${notes.join('')}`;
}
